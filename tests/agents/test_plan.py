"""The plan as the form shows it: phases in order, exact commands once a dry run has read the host."""

from __future__ import annotations

from agents.base.process_start import ProcessStart
from agents.plan import CONTROL_S, Plan, PlanItem, build_plan
from agents.running.preparation import launch_of, server_cpus
from agents.steps.base.step import State
from tests.agents.specs import make_spec

SPEC = make_spec(
    steps=(
        {"kind": "sysctl", "values": {"vm.swappiness": 10}},
        {"kind": "limits", "nofile": 4096},
        {"kind": "environment", "variables": {"A": "1"}},
        {"kind": "affinity", "cpus": "0"},
    ),
    workload={"cpus": "1", "path": "/x"},
    server={"ready": {"path": "/ready"}, "cpus": "0-1"},
)


def tune(plan: Plan) -> tuple[PlanItem, ...]:
    return next(phase for phase in plan.phases if phase.name == "tune").items


def test_a_plan_names_every_phase_in_order() -> None:
    plan = build_plan(SPEC)
    assert [phase.name for phase in plan.phases] == [
        "facts", "snapshot", "tune", "start", "warm_up", "measure", "restore", "verify",
    ]  # fmt: skip
    assert (plan.load_s, plan.estimate_s) == (2, 2 + CONTROL_S)
    load = plan.phases[5].items[0]
    assert load.host == "driver"
    assert load.commands[0].startswith("taskset -c 1 wrk ")
    assert load.commands[0].endswith(" http://127.0.0.1:8080/x")
    ready = plan.phases[3].items[1]
    assert ready.title == "Wait until http://127.0.0.1:8080/ready answers 200"
    assert plan.phases[3].items[0].note == "CPUs 0, nofile 4096, A"


def test_what_a_server_does_between_warm_up_and_measurement_is_in_the_plan() -> None:
    plan = build_plan(make_spec(server={"kind": "postgresql"}))
    titles = {phase.name: [item.title for item in phase.items] for phase in plan.phases}
    assert titles["measure"][0] == "Let PostgreSQL finish what the warm-up left"
    assert titles["warm_up"] == titles["measure"][1:]


def test_without_a_look_at_the_host_the_commands_stay_open() -> None:
    _, sysctl, limits, *_ = tune(build_plan(SPEC))
    assert (sysctl.commands, sysctl.changes) == ((), True)
    assert "a dry run reads it" in sysctl.note
    assert not limits.changes


def test_with_what_was_found_the_commands_and_their_undo_are_exact() -> None:
    found: dict[int, State] = {1: {"vm.swappiness": "60", "read-only": None}}
    _, sysctl, *_ = tune(build_plan(SPEC, found=found))
    assert len(sysctl.commands) == len(sysctl.undo) == 1
    assert "vm.swappiness=10" in sysctl.commands[0]
    assert "vm.swappiness=60" in sysctl.undo[0]
    _, same, *_ = tune(build_plan(SPEC, found={1: {"vm.swappiness": "10", "read-only": None}}))
    assert (same.commands, same.changes) == ((), False)
    assert same.note.startswith("Already so")


def test_a_step_that_cannot_work_here_says_so() -> None:
    edit = {"op": "set", "select": "Service/Connector", "attributes": {"x": "1"}}
    spec = make_spec(steps=({"kind": "xml_edit", "path": "/etc/x.xml", "edits": [edit]},))
    _, item = tune(build_plan(spec, found={1: {"content": None, "mode": None, "owner": None}}))
    assert item.note.startswith("Will fail: ")


def test_the_launch_is_what_the_launch_steps_add_up_to() -> None:
    assert launch_of(SPEC) == ProcessStart(environment={"A": "1"}, limits={"nofile": 4096}, cpus="0")
    assert server_cpus(SPEC) == "0"
    assert server_cpus(make_spec(server={"cpus": "2"})) == "2"
