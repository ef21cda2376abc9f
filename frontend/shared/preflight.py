"""What is known before a run is launched: would it start, would it wait, how long would it take. Touches no host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import Q

from agents.base.cpuset import format_cpus, parse_cpus
from agents.base.errors import AgentError
from agents.plan import Plan, build_plan
from agents.running.preparation import server_cpus
from agents.spec import RunSpec
from experiments.asking.launching.choices import Choice, freeze
from experiments.asking.launching.cpu_sets import CpuSets, shared_cpus
from experiments.asking.launching.own_cpus import on_one_machine, proposal
from experiments.models import DriverSet, Host, Member, Run, Team
from experiments.registry.errors import RequestError
from experiments.registry.hosts.machines import sisters_of, who_uses
from experiments.registry.hosts.reservations import holding_now, reserved
from experiments.registry.teams.access import may_launch_on
from experiments.running.queue.estimates import estimates_for
from frontend.shared.access import TeamRequest

_USED_AS = {Host.Roles.SUT: "SUT", Host.Roles.DRIVER: "driver host", Host.Roles.BOTH: "SUT and driver host"}


@dataclass(frozen=True)
class Check:
    """One finding. `warn` lets the run be launched (it may wait); `fail` does not."""

    result: Literal["pass", "warn", "fail"]
    sentence: str


@dataclass(frozen=True)
class Place:
    """Where a new run would stand: how many runs are before it on its hosts, and how long they take at most."""

    runs_before: int
    wait_s: float


def spec_or_check(choice: Choice) -> tuple[RunSpec | None, list[Check]]:
    """The frozen spec of the choice, or the check that says why there is none."""
    try:
        return freeze(choice), []
    except RequestError as error:
        return None, [Check("fail", error.message)]


def checks_of(member: Member, choice: Choice, spec: RunSpec | None) -> list[Check]:
    """Hosts, grants and CPU sets, the worst first."""
    found: list[Check] = []
    found += _host_checks(member, "SUT", choice.sut)
    for host in choice.drivers:
        if host.pk != choice.sut.pk:
            found += _host_checks(member, "driver host", host)
    if spec is not None:
        found += _cpu_checks(choice, spec)
        found += _root_checks(choice, spec)
    return worst_first(found)


def host_checks(member: Member, host: Host) -> list[Check]:
    """What would keep a run of this member from this host, the worst first."""
    return worst_first(_host_checks(member, _USED_AS[Host.Roles(host.roles)], host))


def worst_first(checks: Iterable[Check]) -> list[Check]:
    order = {"fail": 0, "warn": 1, "pass": 2}
    return sorted(checks, key=lambda check: order[check.result])


def place_in_queue(team: Team, hosts: Iterable[Host]) -> Place:
    """The runs of the team that are live or waiting on these hosts. Three small queries."""
    ids = {host.pk for host in hosts}
    on_drivers = Q(drivers__in=DriverSet.objects.filter(hosts__in=ids))
    before = Run.objects.for_team(team).exclude(state=Run.State.FINISHED).filter(Q(sut__in=ids) | on_drivers)
    pairs = list(before.values_list("workload_id", "sut_id"))
    estimates = estimates_for({workload for workload, _ in pairs}, {sut for _, sut in pairs})
    return Place(len(pairs), sum(estimates.takes_s(*pair) for pair in pairs))


def preview_of(request: TeamRequest, choice: Choice) -> dict[str, Any]:
    """What the fragment beside the form shows of one choice."""
    spec, problems = spec_or_check(choice)
    plan, plan_problems = _plan(spec)
    return {
        "checks": problems + plan_problems + checks_of(request.member, choice, spec),
        "spec": spec,
        "plan": plan,
        "place": place_in_queue(request.team, choice.hosts),
    }


def proposed(choices: Sequence[Choice]) -> CpuSets | None:
    """CPU sets for server and load tool where those that were chosen overlap on one machine."""
    try:
        return proposal(choices)
    except RequestError:
        return None  # what cannot be run for another reason is told in the checks


def _plan(spec: RunSpec | None) -> tuple[Plan | None, list[Check]]:
    if spec is None:
        return None, []
    try:
        return build_plan(spec), []
    except AgentError as error:
        return None, [Check("fail", error.message)]


def _host_checks(member: Member, role: str, host: Host) -> list[Check]:
    who = f"{host.name} ({role})"
    if not host.host_key:
        return [Check("fail", f"{who}: its host key is not approved yet.")]
    found = [] if may_launch_on(member, host) else [Check("fail", f"{who}: you have no grant to launch on it.")]
    sisters = sisters_of([host]).of(host.pk)
    holds = holding_now([host, *sisters]).values()
    hold = next((one for one in holds if one.user_id != member.user_id), None)
    used = who_uses(host, sisters)
    match host.state:
        case Host.State.READY if host.leased_by is None:
            if used:
                found.append(Check("warn", f"{used}; a run waits for that."))
            elif hold is None:
                found.append(Check("pass", f"{who} is ready and free."))
        case Host.State.READY if host.leased_by is not None:
            found.append(Check("warn", f"{who} is in use by run #{host.leased_by.number}; a run waits for it."))
        case _:
            reason = f": {host.state_reason.rstrip('.')}" if host.state_reason else ""
            found.append(Check("warn", f"{who} is {host.get_state_display()}{reason}; a run waits until it is ready."))
    if hold is not None:
        found.append(Check("warn", f"{reserved(host, sisters, hold)}; a run waits for that."))
    if host.last_check.get("state") == "failed":
        if host.last_check.get("message") != host.state_reason:
            found.append(Check("warn", f"{who}: the last connection test failed: {host.last_check.get('message', '')}"))
    elif host.profile_id is None:
        found.append(Check("warn", f"{who}: its hardware is not known yet; test the connection once."))
    return found


def _cpu_checks(choice: Choice, spec: RunSpec) -> list[Check]:
    found = []
    server, tool = server_cpus(spec), spec.workload.cpus
    for what, cpus, host in (("server", server, choice.sut), *(("load tool", tool, host) for host in choice.drivers)):
        if missing := set(parse_cpus(cpus)) - _present(host) if _present(host) else set():
            found.append(
                Check(
                    "fail", f"The {what} is bound to CPU {format_cpus(list(missing))}, which {host.name} does not have."
                )
            )
    if not on_one_machine(choice):
        return found
    if shared := shared_cpus(spec, choice.sut):
        cpus = format_cpus(shared)
        found.append(
            Check(
                "fail", f"Server and load tool would share CPU {cpus} of one machine; give them CPU sets of their own."
            )
        )
    elif server and tool:
        found.append(Check("pass", f"Server on CPU {server}, load tool on CPU {tool}: no overlap."))
    return found


def _root_checks(choice: Choice, spec: RunSpec) -> list[Check]:
    """Steps that need root, on a SUT whose last test found none."""
    steps = sorted({step.kind for step in spec.recipe.steps if step.needs_root})
    told = choice.sut.last_check.get("findings", ())
    if not steps or not any((one["topic"], one["result"]) == ("root", "missing") for one in told):
        return []
    text = f"{choice.sut.name}: the recipe needs root for {', '.join(steps)}, and {choice.sut.user} may not use sudo"
    return [Check("warn", f"{text} without a password. The host's page has the line that mends it.")]


def _present(host: Host) -> set[int]:
    if host.profile is None:
        return set()
    facts = host.profile.facts
    return {cpu for key in ("cpu.online", "cpu.offline") for cpu in parse_cpus(facts.get(key) or "")}
