"""A run of a system in whose middle one member is killed: what it says, and whether every host is as before."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from agents.running.server_names import server_job
from agents.system import LOADED
from experiments.asking.launching.launch import rerun
from experiments.asking.library.catalogue import ExperimentTemplate
from experiments.models import Experiment, Host, Member, Run
from experiments.registry.hosts.driver_sets import hosts_by_role
from lab.lab import Lab
from lab.shell import LabError

LOOK_S = 0.5


def insist_on_a_member(role: str | None, templates: Iterable[ExperimentTemplate]) -> None:
    """LabError when no experiment has such a member."""
    roles = sorted({one for template in templates for one in template.roles})
    if role is not None and role not in roles:
        raise LabError(
            f"--kill {role}: {'there are ' + ', '.join(roles) if roles else 'no experiment is of a system'}."
        )


def limits_of(experiment: Experiment) -> Iterator[str]:
    """Of a system: what the newest counted run of each variant says of its limit."""
    for variant in experiment.variants.order_by("position"):
        run = experiment.runs.counted().filter(variant=variant).order_by("-number").first()
        said = [one["sentence"] for one in run.findings if one["check"] == "system_limit"] if run else []
        yield from (f"{variant.name}, #{run.number}: {sentence}" for sentence in said if run)


def run_with_a_death(member: Member, experiment: Experiment, role: str, lab: Lab) -> Run:
    """The experiment's last run once more, by itself; in the middle of its load the server of `role` gets SIGKILL."""
    last = experiment.runs.order_by("-number").first()
    if last is None:
        raise LabError("The experiment has no run that could be made once more.")
    run: Run = rerun(member, last)
    load = _event(run, "load_started", measured=True)
    if load is not None:
        time.sleep(max(0.0, load["at_unix_s"] + load["duration_s"] / 2 - time.time()))
        server = _event(run, "job_started", name=server_job(role, 0))
        if server is not None:
            lab.exec(_host_names(run)[role], "kill", "-KILL", str(server["pid"]))
    while run.state != Run.State.FINISHED:
        time.sleep(LOOK_S)
        run.refresh_from_db()
    return run


def story_of(run: Run) -> Iterator[str]:
    """How it ended, and for each host whether it is proven to be as before."""
    yield f"outcome: {run.outcome}. {run.failure} {run.failure_hint}".strip()
    restored = run.events.filter(kind="restored").order_by("seq").values_list("payload", flat=True).last()
    differing = restored["differences"] if restored else {}
    after = run.events.filter(kind="snapshot_taken", payload__moment="after").values_list("payload", flat=True)
    seen = {payload.get("role", LOADED) for payload in after}
    for role, host in _host_names(run).items():
        if role in differing:
            yield f"{host} ({role}): NOT as before: {'; '.join(differing[role])}"
        elif role in seen:
            yield f"{host} ({role}): settings read again, equal to those before"
        else:
            yield f"{host} ({role}): a load tool ran there, no setting was changed"
    yield f"restore: {run.get_restore_display()}"


def left_behind(run: Run, lab: Lab) -> list[str]:
    """What is still on the run's hosts, seen past SSH: directories, claims and processes; [] = nothing."""
    found = []
    for host in dict.fromkeys(_host_names(run).values()):
        there = lab.exec(
            host, "sh", "-c", "ls -d /root/.benchhub/runs/* /var/tmp/benchhub-claim.* 2>/dev/null", check=False
        )
        found += [f"{host}: {line} is still there" for line in there.stdout.decode(errors="replace").splitlines()]
        found += [f"{host}: process {one.pid} {one.name} is still there" for one in lab.processes(host)]
    return found


def _host_names(run: Run) -> dict[str, str]:
    """The name of each host of the run by its role."""
    names = dict(Host.objects.values_list("pk", "name"))
    return {role: names[pk] for role, pk in hosts_by_role(run).items()}


def _event(run: Run, kind: str, **payload: object) -> dict[str, float] | None:
    """The payload of the run's first such event, waited for; None when the run ends without it."""
    fields = {f"payload__{name}": value for name, value in payload.items()}
    while True:
        run.refresh_from_db()
        found = run.events.filter(kind=kind, **fields).order_by("seq").values_list("payload", flat=True).first()
        if found is not None or run.state == Run.State.FINISHED:
            return found
        time.sleep(LOOK_S)
