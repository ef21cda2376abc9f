"""Launching a system of several hosts: what is frozen, who may, and which hosts are leased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agents.spec import RunSpec
from experiments.asking.launching.choices import Candidate, Choice, freeze
from experiments.asking.launching.copies import copy_experiment
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run, rerun
from experiments.asking.launching.specs import choice_of
from experiments.models import Application, Host, HostGrant, Member, Recipe, Role, Run
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.hosts.removal import remove_host
from experiments.running.queue.dispatch import claim_next
from experiments.running.queue.waiting import expected_of
from experiments.telling.run_list.lines import lines_page
from experiments.telling.run_list.listing import RunFilter
from tests.experiments.api.conftest import ApiClient, api, make_api
from tests.experiments.conftest import MakeMember, ready_host
from tests.experiments.systems import SYSTEM, system_of

__all__ = ["api", "make_api"]


@pytest.fixture
def system(admin: Member, stock: dict[str, Any]) -> dict[str, Any]:
    """What a run of a proxy, an application and a database on hosts of their own is made of."""
    return system_of(admin, stock)


def test_addresses_steps_and_hosts_of_members_are_frozen(system: dict[str, Any]) -> None:
    spec = freeze(Choice(**system))
    assert spec.application.server.model_dump()["proxy_to"] == ("10.0.0.8:9000",)
    assert spec.part("app").server.model_dump()["argv"] == ("app", "192.168.0.7", "5432")
    assert [step.kind for step in spec.recipe.steps] == ["limits"]
    assert [step.kind for step in spec.part("database").steps] == ["sysctl"]
    (environment,) = spec.part("app").steps
    assert environment.model_dump()["variables"] == {"DATABASE": "192.168.0.7:5432"}
    assert [part.role for part in spec.parts_in_order] == ["database", "app", "sut"]
    assert RunSpec.model_validate(spec.model_dump(mode="json")) == spec


def test_a_frozen_system_that_is_sent_back_is_the_same_choice(admin: Member, system: dict[str, Any]) -> None:
    choice = Choice(**system)
    again = choice_of(admin, freeze(choice))
    assert (again.application, again.recipe, again.members) == (choice.application, choice.recipe, choice.members)
    assert freeze(again) == freeze(choice)


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        ({"members": {}}, "members", "a host for each further member of shop: database, app"),
        ({"members": ("database",)}, "members", "database, app"),
        ({"members": ("database", "app", "cache")}, "members", "database, app"),
        ({"application": None}, "members", "each further member of tomcat: none"),
    ],
)
def test_each_member_needs_a_host_and_no_other_has_one(
    system: dict[str, Any], stock: dict[str, Any], change: dict[str, Any], field: str, problem: str
) -> None:
    if isinstance(roles := change.get("members"), tuple):
        change = {"members": dict.fromkeys(roles, system["members"]["app"])}
    if "application" in change:
        change = {"application": stock["application"]}
    with pytest.raises(RequestError, match=problem) as error:
        freeze(Choice(**{**system, **change}))
    assert error.value.field == field


def test_a_step_on_a_member_that_the_application_lacks_is_refused(system: dict[str, Any], admin: Member) -> None:
    steps = {"steps": [{"kind": "limits", "nofile": 1024, "on": "cache"}]}
    recipe = save_version(admin, Recipe, "lost", steps)
    with pytest.raises(RequestError, match="a step on cache, which is no member") as error:
        freeze(Choice(**{**system, "recipe": recipe}))
    assert error.value.field == "recipe"
    with pytest.raises(RequestError, match="step 1: `on` is the role of a member"):
        save_version(admin, Recipe, "wrong", {"steps": [{"kind": "limits", "nofile": 1024, "on": "A B"}]})


def test_two_members_on_one_host_need_cpus_of_their_own(system: dict[str, Any], admin: Member) -> None:
    db = system["members"]["database"]
    together = {**system, "members": {"database": db, "app": db}}
    web, app = SYSTEM["members"]
    clash = {**SYSTEM, "members": [web, {**app, "server": {**app["server"], "port": 5432}}]}
    choice = Choice(**{**together, "application": save_version(admin, Application, "same port", clash)})
    with pytest.raises(RequestError, match="database and app both want port"):
        freeze(choice)
    bound = {
        **SYSTEM,
        "members": [
            {**one, "server": {**one["server"], "cpus": cpus}}
            for one, cpus in zip(SYSTEM["members"], ("0-1", "1-2"), strict=True)
        ],
    }
    with pytest.raises(RequestError, match="database and app would share CPU 1 of db") as error:
        freeze(Choice(**{**together, "application": save_version(admin, Application, "bound", bound)}))
    assert error.value.field == "members"


def test_all_hosts_of_a_system_are_leased_together_or_none(admin: Member, system: dict[str, Any]) -> None:
    run = launch_run(admin, Choice(**system))
    assert {role: Host.objects.get(pk=pk).name for role, pk in hosts_by_role(run).items()} == {
        "sut": "sut-1",
        "database": "db",
        "app": "app",
        "driver": "driver-1",
    }
    assert [host.name for host in run.hosts] == ["sut-1", "app", "db", "driver-1"]
    Host.objects.filter(name="db").update(state=Host.State.DIRTY)
    assert claim_next("worker") is None
    waits = expected_of(run)
    assert waits is not None
    assert "db" in waits.reason
    Host.objects.filter(name="db").update(state=Host.State.READY)
    assert claim_next("worker") == run
    assert set(Host.objects.filter(leased_by=run).values_list("name", flat=True)) == {"sut-1", "app", "db", "driver-1"}


def test_a_run_that_wants_the_host_of_a_member_waits_for_it(
    admin: Member, system: dict[str, Any], stock: dict[str, Any]
) -> None:
    launch_run(admin, Choice(**system))
    second = launch_run(
        admin, Choice(**{**stock, "sut": system["members"]["database"], "drivers": (ready_host(admin, "z"),)})
    )
    assert claim_next("worker") is not None
    assert claim_next("worker") is None
    assert second.hosts[0].name == "db"


def test_launching_needs_a_grant_for_the_hosts_of_members_too(
    admin: Member, system: dict[str, Any], make_member: MakeMember
) -> None:
    launcher = make_member(admin.team, Role.LAUNCHER, "lin")
    choice = Choice(**system)
    for host in (choice.sut, *choice.drivers, system["members"]["app"]):
        HostGrant.objects.create(host=host, member=launcher)
    with pytest.raises(Forbidden, match="db"):
        launch_run(launcher, choice)
    HostGrant.objects.create(host=system["members"]["database"], member=launcher)
    run = launch_run(launcher, choice)
    HostGrant.objects.filter(host=system["members"]["database"]).delete()
    with pytest.raises(Forbidden, match="db"):
        rerun(launcher, run)


def test_what_only_an_admin_may_save_is_so_in_a_member_too(admin: Member, make_member: MakeMember) -> None:
    editor = make_member(admin.team, Role.EDITOR, "eve")
    with pytest.raises(Forbidden, match=r"members\.1\.server"):
        save_version(editor, Application, "own", {**SYSTEM, "server": {"kind": "nginx"}})
    recipe = {"steps": [{"kind": "command", "run": "true", "undo": "true", "observe": "true", "on": "database"}]}
    with pytest.raises(Forbidden, match=r"steps\.0"):
        save_version(editor, Recipe, "own", recipe)


def test_a_rerun_and_a_copy_have_the_same_members(admin: Member, system: dict[str, Any]) -> None:
    run = launch_run(admin, Choice(**system, parameters={"swappiness": 1}))
    again = rerun(admin, run)
    assert again.spec == run.spec
    assert again.drivers_id == run.drivers_id
    variants = [_candidate(system, name, swappiness) for name, swappiness in (("calm", 1), ("eager", 90))]
    experiment = create_experiment(
        admin, name="swap", workload=system["workload"], candidates=variants, repetitions=1, order="sequential"
    )
    copy = copy_experiment(admin, experiment)
    runs = launch_experiment(admin, copy)
    assert [hosts_by_role(one) for one in runs] == [hosts_by_role(run)] * 2


def _candidate(system: dict[str, Any], name: str, swappiness: int) -> Candidate:
    parts = {key: system[key] for key in ("application", "recipe", "sut", "drivers", "members")}
    return Candidate(name=name, **parts, parameters={"swappiness": swappiness})


def test_lists_name_the_driver_hosts_of_a_system_alone(admin: Member, system: dict[str, Any]) -> None:
    run = launch_run(admin, Choice(**system))
    page, names = lines_page(admin.team, RunFilter())
    assert names.several("drivers_id", page.rows[0].drivers_id) == ["driver-1"]
    assert run.drivers is not None
    assert run.drivers.names == ["driver-1"]


def test_a_host_that_a_system_speaks_of_stays(admin: Member, system: dict[str, Any]) -> None:
    launch_run(admin, Choice(**system))
    with pytest.raises(RequestError, match="cannot be removed"):
        remove_host(admin, system["members"]["database"])


def test_programs_name_members_by_role(api: ApiClient, system: dict[str, Any]) -> None:
    named = {"application": "shop", "recipe": "calm", "sut": "sut-1", "drivers": ["driver-1"]}
    body = {**named, "workload": "home page", "members": {"database": "db", "app": "app"}}
    answer = api.post("/runs", body)
    assert answer.status_code == 202, answer.content
    spec = answer.json()["spec"]
    assert [one["host"]["name"] for one in spec["members"]] == ["db", "app"]
    assert answer.json()["drivers"] == ["driver-1"]
    assert api.post("/runs", spec).json()["spec"] == spec
    lost = api.post("/runs", body | {"members": {"database": "db", "app": "nowhere"}})
    assert (lost.status_code, lost.json()["field"]) == (422, "members.app")
    variant = {**named, "name": "a", "members": body["members"]}
    made = api.post("/experiments", {"name": "x", "workload": "home page", "variants": [variant]})
    assert made.status_code in (200, 201), made.content
    assert made.json()["variants"][0]["members"] == {"database": "db", "app": "app"}


def test_a_single_server_has_no_word_of_members(api: ApiClient, stock: dict[str, Any]) -> None:
    named = {"application": "tomcat", "recipe": "limits", "sut": "sut-1", "drivers": ["driver-1"]}
    run = api.post("/runs", {**named, "workload": "home page"}).json()
    assert "members" not in run["spec"]
    assert "members" not in run["spec"]["application"]
    assert Run.objects.get().drivers.key.isdecimal()  # type: ignore[union-attr]
    made = api.post("/experiments", {"name": "x", "workload": "home page", "variants": [{**named, "name": "a"}]})
    assert "members" not in made.json()["variants"][0]
    assert set(_stored(api, "applications", "tomcat")) == {"description", "server"}


def _stored(api: ApiClient, kind: str, name: str) -> Sequence[str]:
    body = api.get(f"/{kind}/{name}").json()
    return list(body.get("body", body))
