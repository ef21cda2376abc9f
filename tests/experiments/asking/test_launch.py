"""Launching: what is frozen, what is refused, the order of an experiment's runs, and cancelling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.spec import RunSpec
from experiments.asking.launching.cancelling import cancel_experiment, cancel_run
from experiments.asking.launching.choices import Candidate, Choice, filled_in, freeze
from experiments.asking.launching.cpu_sets import CpuSets, propose
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run, rerun
from experiments.asking.launching.own_cpus import bound
from experiments.models import (
    Application,
    AuditEntry,
    Experiment,
    HardwareProfile,
    Host,
    Machine,
    Member,
    Recipe,
    Role,
    Run,
    Workload,
)
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.experiments.blocks import run_order
from experiments.registry.experiments.rules import Rules
from experiments.registry.hosts.inventory import grant
from tests.experiments.conftest import APPLICATION, WORKLOAD, MakeMember, ready_host
from tests.experiments.finished import finish_next, whole_run


@pytest.fixture
def choice(stock: dict[str, Any]) -> Choice:
    return Choice(**stock)


@pytest.fixture
def experiment(admin: Member, stock: dict[str, Any]) -> Experiment:
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    candidates = [
        Candidate(name=f"v{count}", parameters={"nofile": 1024 * (count + 1)}, is_baseline=count == 0, **sides)
        for count in range(3)
    ]
    return create_experiment(admin, name="files", workload=stock["workload"], candidates=candidates, repetitions=4)


def test_a_run_holds_all_that_it_needs_from_the_moment_it_is_launched(admin: Member, choice: Choice) -> None:
    run = launch_run(admin, choice, labels={"commit": "abc"}, tags=["ci"], notes="n")
    spec = RunSpec.model_validate(run.spec)
    assert spec == freeze(choice)
    assert spec.recipe.parameters == {"nofile": 65535}
    assert (run.number, run.state, run.labels, run.tags, run.notes) == (1, "queued", {"commit": "abc"}, ["ci"], "n")
    save_version(admin, Recipe, "limits", {"steps": []})
    assert RunSpec.model_validate(Run.objects.get(pk=run.pk).spec) == spec
    assert [launch_run(admin, choice).number, rerun(admin, run).number] == [2, 3]


def test_a_recipe_knows_the_cpus_that_the_server_may_use(admin: Member, choice: Choice) -> None:
    recipe = save_version(admin, Recipe, "cpus", {"steps": [{"kind": "limits", "nofile": "${sut_cpu_count * 100}"}]})
    sides: dict[str, Any] = {
        "application": choice.application,
        "workload": choice.workload,
        "drivers": choice.drivers,
    }
    with pytest.raises(RequestError, match="sut_cpu_count") as refusal:
        freeze(Choice(recipe=recipe, sut=choice.sut, **sides))
    assert refusal.value.field == "parameters"  # of the recipe itself, no value that was given
    profile = HardwareProfile.objects.create(team=admin.team, digest="d", facts={"cpu.online": "0-3,8"})
    Host.objects.filter(pk=choice.sut.pk).update(profile=profile)
    sut = Host.objects.get(pk=choice.sut.pk)
    assert freeze(Choice(recipe=recipe, sut=sut, **sides)).recipe.steps[0].model_dump()["nofile"] == 500


def test_what_does_not_fit_is_refused_with_its_field(admin: Member, choice: Choice) -> None:
    fresh = Host.objects.create(team=admin.team, name="new", address="127.0.0.1", user="bench")
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"sut": fresh}, "sut", "not approved yet"),
        ({"sut": choice.drivers[0]}, "sut", "its role is driver"),
        ({"drivers": (choice.sut,)}, "drivers", "its role is sut"),
        ({"drivers": ()}, "drivers", "at least one driver host"),
        ({"parameters": {"nofile": 1}}, "parameters.nofile", "below the minimum"),
        ({"parameters": {"files": 1}}, "parameters.files", "has no parameter"),
    ]
    parts = {name: getattr(choice, name) for name in ("application", "recipe", "workload", "sut", "drivers")}
    for change, field, words in cases:
        with pytest.raises(RequestError) as refusal:
            launch_run(admin, Choice(**{**parts, **change}))
        assert (refusal.value.field, words in refusal.value.message) == (field, True), refusal.value.message
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("server", "tool", "shared"),
    [("0-1", "1-2", "1"), ("", "3", "3"), ("", "", "0-3"), ("0-1", "2-3", None), ("0", "1", None)],
)
def test_server_and_load_tool_of_one_host_do_not_share_a_cpu(
    admin: Member, stock: dict[str, Any], server: str, tool: str, shared: str | None
) -> None:
    host = ready_host(admin, "alone")
    host.profile = HardwareProfile.objects.create(team=admin.team, digest="four", facts={"cpu.online": "0-3"})
    body = APPLICATION | {"server": APPLICATION["server"] | {"cpus": server}}
    choice = Choice(
        save_version(admin, Application, "bound", body),
        stock["recipe"],
        save_version(admin, Workload, "bound", WORKLOAD | {"cpus": tool}),
        host,
        (host,),
    )
    freeze(replace(choice, sut=stock["sut"]))  # two hosts: nothing to share
    if shared is None:
        assert freeze(choice).workload.cpus == tool
        return
    with pytest.raises(RequestError, match=f"would share CPU {shared} of alone") as refused:
        freeze(choice)
    assert refused.value.field == "workload.cpus"


def one_machine(member: Member, *hosts: Host, online: str = "0-3") -> None:
    """As a look at them leaves hosts that turn out to be one machine."""
    machine = Machine.objects.create(boot_id="b")
    profile, _ = HardwareProfile.objects.get_or_create(team=member.team, digest=online, facts={"cpu.online": online})
    for host in hosts:
        host.machine, host.profile = machine, profile
        host.save()


def test_two_names_of_one_machine_are_refused_before_anything_is_queued(
    admin: Member, stock: dict[str, Any], choice: Choice
) -> None:
    one_machine(admin, stock["sut"], *stock["drivers"])
    with pytest.raises(RequestError, match="would share CPU 0-3 of one machine") as refused:
        launch_run(admin, choice)
    assert refused.value.field == "workload.cpus"
    assert "for example: the application CPU 0-1 and the workload CPU 2-3." in refused.value.message
    assert not Run.objects.exists()
    one_machine(admin, stock["sut"])
    launch_run(admin, choice)


@pytest.mark.parametrize(
    ("server", "facts", "proposed"),
    [
        ({}, {"cpu.online": "0-3"}, CpuSets("0-1", "2-3")),
        ({}, {"cpu.online": "0-4"}, CpuSets("0-2", "3-4")),
        ({}, {"cpu.online": "0"}, None),
        ({}, {"cpu.online": ""}, None),
        ({"cpus": "0-3"}, {"cpu.online": "0-3"}, CpuSets("0-1", "2-3")),
        ({"instance_cpus": ["0", "1"]}, {"cpu.online": "0-3"}, CpuSets("", "2-3")),
        ({"instance_cpus": ["0-1", "2-3"]}, {"cpu.online": "0-3"}, None),
        (
            {},
            {"cpu.online": "0-3"} | {f"cpu.core_of.{cpu}": f"0/0/{cpu % 2}" for cpu in range(4)},
            CpuSets("0,2", "1,3"),
        ),
    ],
)
def test_cpu_sets_are_proposed_for_one_machine_and_whole_cores_stay_together(
    admin: Member,
    stock: dict[str, Any],
    choice: Choice,
    server: dict[str, Any],
    facts: dict[str, str],
    proposed: CpuSets | None,
) -> None:
    one_machine(admin, stock["sut"], *stock["drivers"])
    stock["sut"].profile = HardwareProfile.objects.create(team=admin.team, digest="x", facts=facts)
    body = APPLICATION | {"server": APPLICATION["server"] | server}
    own = replace(choice, sut=stock["sut"], application=save_version(admin, Application, "bound", body))
    assert propose([(filled_in(own), own.sut)]) == proposed
    if proposed is not None:
        application, workload = bound(admin, own, proposed)
        assert freeze(replace(own, application=application, workload=workload)).workload.cpus == proposed.tool
        assert (workload.one_off, Workload.objects.get(pk=choice.workload.pk).body["cpus"]) == (True, "")


def test_a_parameter_does_not_make_a_shell_of_an_editors_recipe(
    admin: Member, make_member: MakeMember, choice: Choice
) -> None:
    body = {
        "parameters": {"option": {"type": "str", "default": "-Xmx64m"}},
        "steps": [{"kind": "jvm_options", "options": ["${option}"]}],
    }
    editor = make_member(admin.team, Role.EDITOR)
    for host in (choice.sut, *choice.drivers):
        grant(admin, host, editor)
    choice = replace(choice, recipe=save_version(editor, Recipe, "options", body))
    assert launch_run(editor, choice).state == "queued"
    own = replace(choice, parameters={"option": "-javaagent:/tmp/agent.jar"})
    with pytest.raises(Forbidden, match="only an admin may launch it so"):
        launch_run(editor, own)
    assert launch_run(admin, own).state == "queued"


def test_a_candidate_that_waits_for_the_a_a_check_makes_no_shell_either(
    admin: Member, make_member: MakeMember, choice: Choice
) -> None:
    body = {
        "parameters": {"option": {"type": "str", "default": "-Xmx64m"}},
        "steps": [{"kind": "jvm_options", "options": ["${option}"]}],
    }
    editor = make_member(admin.team, Role.EDITOR)
    for host in (choice.sut, *choice.drivers):
        grant(admin, host, editor)
    parts = (choice.application, save_version(editor, Recipe, "options", body), choice.sut, choice.drivers)
    candidates = [Candidate("default", *parts), Candidate("shell", *parts, {"option": "-javaagent:/tmp/agent.jar"})]
    with pytest.raises(Forbidden, match=r"Variant shell: .*only an admin may launch it so"):
        create_experiment(editor, name="q", workload=choice.workload, candidates=candidates, rules=Rules(aa_first=True))
    assert not Experiment.objects.exists()


def test_parts_of_two_teams_do_not_mix(admin: Member, other_admin: Member, choice: Choice) -> None:
    foreign = ready_host(other_admin, "their-sut", roles="sut")
    parts = {name: getattr(choice, name) for name in ("application", "recipe", "workload", "drivers")}
    with pytest.raises(RequestError, match="belong to one team"):
        launch_run(admin, Choice(**parts, sut=foreign))


def test_launching_on_a_host_is_a_grant_of_its_own(admin: Member, make_member: MakeMember, choice: Choice) -> None:
    launcher = make_member(admin.team, Role.LAUNCHER)
    with pytest.raises(Forbidden, match="sut-1"):
        launch_run(launcher, choice)
    grant(admin, choice.sut, launcher)
    with pytest.raises(Forbidden, match="driver-1"):
        launch_run(launcher, choice)
    grant(admin, choice.drivers[0], launcher)
    assert launch_run(launcher, choice).state == "queued"


@pytest.mark.parametrize(
    "order, expected",
    [
        ("interleaved", [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "a"), (2, "b")]),
        ("sequential", [(0, "a"), (1, "a"), (2, "a"), (0, "b"), (1, "b"), (2, "b")]),
    ],
)
def test_the_order_of_runs(order: str, expected: list[tuple[int, str]]) -> None:
    assert run_order(["a", "b"], range(3), order=order, seed=1) == expected


def test_every_block_holds_each_variant_once_in_a_seeded_order() -> None:
    variants = list("abcdef")
    first = run_order(variants, range(20), order="blocks", seed=7)
    assert [block for block, _ in first] == [block for block in range(20) for _ in variants]
    blocks = [tuple(v for b, v in first if b == block) for block in range(20)]
    assert all(sorted(block) == variants for block in blocks)
    assert len(set(blocks)) > 10
    assert first == run_order(variants, range(20), order="blocks", seed=7)
    assert first != run_order(variants, range(20), order="blocks", seed=8)
    assert first[-6:] == run_order(variants, range(19, 20), order="blocks", seed=7)  # blocks added later fit on


def test_an_experiment_runs_in_blocks_and_can_be_continued(admin: Member, experiment: Experiment) -> None:
    runs = launch_experiment(admin, experiment)
    assert len(runs) == 12
    assert [run.number for run in runs] == list(range(1, 13))
    for block in range(4):
        assert sorted(run.variant.name for run in runs if run.block == block and run.variant) == ["v0", "v1", "v2"]
    assert [run.spec["recipe"]["steps"][0]["nofile"] for run in runs if run.block == 0 and run.spec] == [
        1024 * (int(run.variant.name[1]) + 1) for run in runs if run.block == 0 and run.variant
    ]
    with pytest.raises(Conflict, match="running already"):
        launch_experiment(admin, experiment)
    for _ in runs:
        finish_next()
    experiment.refresh_from_db()
    assert experiment.state == "finished"
    with pytest.raises(Conflict, match="how many repetitions"):
        launch_experiment(admin, experiment)
    more = launch_experiment(admin, experiment, repetitions=1)
    assert ([run.block for run in more], experiment.repetitions, experiment.state) == ([4, 4, 4], 5, "running")


def test_a_queued_run_that_is_cancelled_ends_at_once(admin: Member, choice: Choice) -> None:
    run = launch_run(admin, choice)
    cancel_run(admin, run)
    assert (run.state, run.outcome) == ("finished", "cancelled")
    assert run.failure == "Cancelled before it started; no host was touched."
    with pytest.raises(Conflict, match="finished already"):
        cancel_run(admin, run)


def test_an_experiment_whose_last_runs_are_cancelled_one_by_one_is_finished(
    admin: Member, experiment: Experiment
) -> None:
    runs = launch_experiment(admin, experiment)
    finish_next()
    for run in runs:
        if Run.objects.get(pk=run.pk).state != "finished":
            cancel_run(admin, run)
    experiment.refresh_from_db()
    assert experiment.state == "finished"


def test_a_cancelled_experiment_stays_cancelled_when_its_running_run_ends(
    admin: Member, experiment: Experiment
) -> None:
    from experiments.running.ending.conclusion import conclude
    from experiments.running.executing.recorder import Recorder
    from experiments.running.queue.dispatch import claim_next

    launch_experiment(admin, experiment)
    run = claim_next("test")
    assert run is not None
    cancel_experiment(admin, experiment)
    assert experiment.state == "cancelled"
    assert AuditEntry.objects.filter(action="experiment.cancel").count() == 1
    with pytest.raises(Conflict):
        cancel_experiment(admin, experiment)
    assert set(experiment.runs.exclude(pk=run.pk).values_list("state", "outcome")) == {("finished", "cancelled")}
    run.refresh_from_db()
    assert (run.state, run.cancel_requested_at is not None) == ("preparing", True)
    recorder = Recorder(run.pk, run.fence)
    assert recorder.beat() is True
    for event in whole_run():
        recorder.store(event)
    conclude(run.pk, run.fence, recorder.record())
    experiment.refresh_from_db()
    assert experiment.state == "cancelled"


@pytest.mark.parametrize(
    "change, field",
    [
        ({"name": " "}, "name"),
        ({"repetitions": 0}, "repetitions"),
        ({"repetitions": 101}, "repetitions"),
        ({"margin_ratio": 0.0}, "margin_ratio"),
        ({"margin_ratio": 1.0}, "margin_ratio"),
        ({"candidates": []}, "variants"),
    ],
)
def test_an_experiment_that_cannot_answer_is_refused(
    admin: Member, stock: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    given: dict[str, Any] = {
        "name": "x", "workload": stock["workload"], "candidates": [Candidate(name="a", **sides)], **change,
    }  # fmt: skip
    with pytest.raises(RequestError) as refusal:
        create_experiment(admin, **given)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    "candidates, words",
    [
        ([{"name": "a"}, {"name": "a"}], "the same name"),
        ([{"name": "a", "is_baseline": True}, {"name": "b", "is_baseline": True}], "Only one variant"),
        ([{"name": "a"}, {"name": "b", "parameters": {"nofile": 1}}], "Variant b: Parameter nofile"),
    ],
)
def test_variants_that_do_not_fit_are_refused(
    admin: Member, stock: dict[str, Any], candidates: list[dict[str, Any]], words: str
) -> None:
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    with pytest.raises(RequestError, match=words):
        create_experiment(
            admin, name="x", workload=stock["workload"], candidates=[Candidate(**sides, **c) for c in candidates]
        )
    assert not Experiment.objects.exists()
