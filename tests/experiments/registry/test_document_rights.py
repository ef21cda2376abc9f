"""Who may save what a host interprets, at every door: API, library, launches, dry runs, changed specifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from agents.spec import RunSpec
from experiments.asking.launching import dryrun
from experiments.asking.launching.choices import Candidate, Choice, freeze
from experiments.asking.launching.copies import newest_version
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_run
from experiments.asking.launching.specs import choice_of
from experiments.asking.library import catalogue
from experiments.asking.library.install import install, save_shipped
from experiments.models import Application, AuditEntry, Host, Member, Recipe, Role, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Forbidden
from experiments.registry.hosts.inventory import grant
from experiments.registry.teams import tokens
from tests.experiments.conftest import APPLICATION, WORKLOAD, MakeMember, ready_host

pytestmark = pytest.mark.django_db

LUA = "os.execute('id > /tmp/mark')"
TOOL: dict[str, Any] = {"kind": "wrk", "connections": 16, "threads": 2}
SERVER: dict[str, Any] = {"kind": "tomcat", "home": "/opt/tomcat"}


def with_tool(**options: str) -> dict[str, Any]:
    return {"driver": TOOL | options, "phases": WORKLOAD["phases"]}


SCRIPTED = with_tool(script=LUA)
FREE = {
    "parameters": {"text": {"type": "str", "default": "-Xmx1g"}, "size": {"type": "int", "default": 1}},
    "steps": [{"kind": "jvm_options", "options": ["${text}", "-Xms${size}m"]}],
}
"""A recipe that is harmless with its defaults."""
RAW = {
    "parameters": {"text": {"type": "str", "default": "a"}, "option": {"type": "str", "default": "-Xmx1g"}},
    "steps": [
        {"kind": "command", "run": 'echo "$1"', "undo": ":", "arguments": ["${text}"]},
        {"kind": "jvm_options", "options": ["${option}", "-javaagent:/opt/a.jar"]},
    ],
}
"""An admin's recipe: text goes to the script as an argument, and an agent is loaded."""


@pytest.fixture
def editor(admin: Member, make_member: MakeMember) -> Member:
    return make_member(admin.team, Role.EDITOR)


@pytest.fixture
def launcher(admin: Member, make_member: MakeMember) -> Member:
    return make_member(admin.team, Role.LAUNCHER)


@pytest.fixture
def sut(admin: Member, editor: Member) -> Host:
    host = ready_host(admin, "sut-1", roles="sut")
    grant(admin, host, editor)
    return host


@pytest.fixture
def driver(admin: Member, editor: Member) -> Host:
    host = ready_host(admin, "driver-1", roles="driver")
    grant(admin, host, editor)
    return host


def choice(admin: Member, sut: Host, driver: Host, recipe: Recipe, **parameters: Any) -> Choice:
    application = save_version(admin, Application, "app", APPLICATION)
    workload = save_version(admin, Workload, "load", WORKLOAD)
    return Choice(application, recipe, workload, sut, (driver,), parameters)


@pytest.mark.parametrize(
    ("model", "body", "field"),
    [
        (Workload, SCRIPTED, "driver.script"),
        (Workload, with_tool(binary="../../tmp/x.sh"), "driver.binary"),
        (
            Application,
            {"server": SERVER | {"jvm_options": ["-XX:OnError=id"]}},
            "server.jvm_options",
        ),
        (Application, {"server": SERVER | {"home": "/tmp/tomcat"}}, "server.home"),
        (Recipe, RAW, "steps.0.kind"),
        (Recipe, {"steps": [{"kind": "environment", "variables": {"BASH_ENV": "x"}}]}, "steps.0.variables"),
    ],
)
def test_an_editor_is_told_which_field_is_an_admins(
    admin: Member, editor: Member, model: Any, body: Mapping[str, Any], field: str
) -> None:
    with pytest.raises(Forbidden, match=field):
        save_version(editor, model, "x", body)
    assert not model.objects.exists()
    assert save_version(admin, model, "x", body).version == 1
    assert AuditEntry.objects.get(action=f"{model.__name__.lower()}.save").after is not None


@pytest.mark.parametrize(
    "parameter",
    [
        {"type": "str"},  # "x" is no CPU
        {"type": "int", "minimum": 0.5, "maximum": 0.7},  # no number fits
        {"type": "int", "minimum": 5, "choices": [1, 6]},
    ],
)
def test_a_step_that_fits_no_value_hides_no_other_step(
    admin: Member, editor: Member, parameter: dict[str, Any]
) -> None:
    affinity = {"kind": "affinity", "cpus": "${cpus}"}
    parameters = {"cpus": parameter, "open": {"type": "str"}}
    shell = {"kind": "command", "run": "id", "undo": ":"}
    hidden = {"parameters": parameters, "steps": [affinity, shell]}
    with pytest.raises(Forbidden, match=r"steps\.1\.kind"):
        save_version(editor, Recipe, "x", hidden)
    unjudged = {"parameters": parameters, "steps": [{"kind": "jvm_options", "options": ["${cpus}", "${cpus}=\0"]}]}
    with pytest.raises(Forbidden, match=r"steps\.0"):
        save_version(editor, Recipe, "x", unjudged)
    assert save_version(editor, Recipe, "x", {"parameters": parameters, "steps": [affinity]}).version == 1
    assert save_version(admin, Recipe, "x", hidden).version == 2


def test_the_api_meets_the_same_gate(editor: Member, client: Client) -> None:
    _, secret = tokens.issue(editor, name="ci", scopes=["read", "write"])
    bearer = {"Authorization": f"Bearer {secret}"}
    refused = client.put("/api/v1/workloads/load", SCRIPTED, content_type="application/json", headers=bearer)
    assert (refused.status_code, "driver.script" in refused.content.decode()) == (403, True)
    saved = client.put("/api/v1/workloads/load", WORKLOAD, content_type="application/json", headers=bearer)
    assert saved.status_code == 201


def test_scripts_that_the_library_ships_need_no_admin_and_others_in_their_place_do(editor: Member) -> None:
    template = catalogue.template("rest-get")
    places = {"tomcat_home": "/opt/tomcat", "rest_war": "/opt/rest.war", "jmeter_home": "/opt/jmeter"}
    workload = catalogue.workload("rest-wrk-get")
    values = {name: setting.at("small") for name, setting in workload.settings.items()}
    saved = save_shipped(
        editor, Workload, workload, {name: value for name, value in values.items() if value is not None}
    )
    body = saved.body
    script = body["driver"]["script"]
    assert "function done" in script
    with pytest.raises(Forbidden):
        save_version(editor, Workload, "own", {**body, "driver": {**body["driver"], "script": script + LUA}})
    given = {name: value for name, value in places.items() if name in template.settings()}
    assert install(editor, template, "small", given).workload.created_by == editor.user


def test_no_parameter_makes_a_harmless_recipe_do_more(admin: Member, editor: Member, sut: Host, driver: Host) -> None:
    recipe = save_version(editor, Recipe, "free", FREE)
    harmful = choice(admin, sut, driver, recipe, text="-XX:OnOutOfMemoryError=id")
    with pytest.raises(Forbidden, match="only an admin"):
        launch_run(editor, harmful)
    with pytest.raises(Forbidden, match="only an admin"):
        dryrun.request(editor, harmful)
    one = Candidate("a", harmful.application, recipe, sut, (driver,), harmful.parameters, is_baseline=True)
    with pytest.raises(Forbidden, match="only an admin"):
        create_experiment(editor, name="x", workload=harmful.workload, candidates=[one])
    assert launch_run(editor, choice(admin, sut, driver, recipe, text="-Xmx2g", size=3)).number
    assert launch_run(admin, harmful).number


def test_in_an_admins_recipe_text_of_others_reaches_only_what_the_admin_left_open(
    admin: Member, editor: Member, sut: Host, driver: Host
) -> None:
    recipe = save_version(admin, Recipe, "raw", RAW)
    assert launch_run(editor, choice(admin, sut, driver, recipe, text="$(id)")).number  # it is $1 of the script
    with pytest.raises(Forbidden, match="step 2"):
        launch_run(editor, choice(admin, sut, driver, recipe, option="-javaagent:/tmp/own.jar"))


def changed(admin: Member, sut: Host, driver: Host, **driver_options: Any) -> RunSpec:
    """The specification of a run whose workload is another one than the team saved."""
    recipe = save_version(admin, Recipe, "none", {"steps": []})
    spec = freeze(choice(admin, sut, driver, recipe)).model_dump(mode="json")
    spec["workload"]["driver"] |= driver_options
    return RunSpec.model_validate(spec)


def test_a_changed_specification_is_a_version_for_that_run_and_nobodys_newest(
    admin: Member, editor: Member, sut: Host, driver: Host
) -> None:
    spec = changed(admin, sut, driver, connections=64)
    made = choice_of(editor, spec).workload
    assert (made.name, made.version, made.one_off) == ("load", 2, True)
    assert choice_of(editor, spec).workload == made  # a second time it is found again
    saved = Workload.objects.get(name="load", version=1)
    assert list(Workload.objects.newest_versions()) == [saved]
    assert newest_version(made) == saved == newest_version(saved)
    kept = save_version(editor, Workload, "load", made.body)  # to go on with it, somebody saves it
    assert (kept.version, kept.one_off) == (3, False)


def test_a_changed_specification_needs_the_rights_of_saving_it(
    admin: Member, editor: Member, launcher: Member, sut: Host, driver: Host
) -> None:
    with pytest.raises(Forbidden, match=r"driver\.script"):
        choice_of(editor, changed(admin, sut, driver, script=LUA))
    with pytest.raises(Forbidden):
        choice_of(launcher, changed(admin, sut, driver, connections=64))
    assert choice_of(admin, changed(admin, sut, driver, script=LUA)).workload.one_off
