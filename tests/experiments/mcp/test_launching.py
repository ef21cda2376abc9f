"""Starting a run by an assistant: off, then a plan that starts nothing, and its confirmation, once."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import pytest

from experiments.mcp.tools import LAUNCHING
from experiments.models import Application, Member, Recipe, Role, Run, Workload
from experiments.registry.documents.versions import save_version
from tests.experiments.api.test_auth import NAMES
from tests.experiments.conftest import MakeMember
from tests.experiments.mcp.conftest import Caller, MakeCaller

NEW = {tool.name for tool in LAUNCHING}
SHELL = {"steps": [{"kind": "command", "run": "touch /tmp/x", "undo": "rm /tmp/x"}]}
TEXT = {
    "parameters": {"path": {"type": "str", "default": "webapps/ROOT/a.html"}},
    "steps": [{"kind": "file", "path": "${path}", "content": "x"}],
}


@pytest.fixture
def launcher(admin: Member, stock: dict[str, Any], make_caller: MakeCaller, settings: Any) -> Caller:
    settings.BENCHHUB_MCP_LAUNCH = True
    return make_caller(admin, "read", "launch")


@pytest.mark.parametrize(
    ("scopes", "on"), [(("read",), True), (("read", "launch"), False), (("read", "write", "admin"), True)]
)
def test_without_the_scope_or_the_switch_there_is_no_such_tool(
    admin: Member, stock: dict[str, Any], make_caller: MakeCaller, settings: Any, scopes: tuple[str, ...], on: bool
) -> None:
    settings.BENCHHUB_MCP_LAUNCH = on
    caller = make_caller(admin, *scopes)
    assert not NEW & {*caller.tools()}
    for name in NEW:
        answer = caller.ask("tools/call", name=name, arguments=NAMES)
        assert "There is no tool" in answer["error"]["message"]
    assert not Run.objects.exists()


def test_a_plan_starts_nothing_and_its_confirmation_one_run(launcher: Caller) -> None:
    tools = launcher.tools()
    assert {*tools} >= NEW
    assert [tools[name]["annotations"]["readOnlyHint"] for name in ("plan_run", "launch_plan")] == [True, False]
    plan = launcher.call("plan_run", **NAMES, parameters={"nofile": 2048}, labels={"asked": "by ada"})
    assert not Run.objects.exists()
    assert (plan["would_launch"]["recipe"], plan["steps_of_the_recipe"]) == ("limits@1", ["limits"])
    assert (plan["hosts"][0]["name"], plan["estimated_duration_s"] > 0) == ("sut-1", True)
    first, again = (launcher.call("launch_plan", plan=plan["plan"])["launched"] for _ in range(2))
    assert (first["number"], again["number"]) == (1, 1)
    run = Run.objects.get()
    assert (run.parameters, run.labels) == ({"nofile": "2048"}, {"asked": "by ada"})


def test_a_plan_shows_texts_of_parameters_in_the_type_that_the_recipe_declares(launcher: Caller) -> None:
    plan = launcher.call("plan_run", **NAMES, parameters={"nofile": "2048"})
    assert plan["would_launch"]["parameters"] == {"nofile": 2048}
    launcher.call("launch_plan", plan=plan["plan"])
    assert Run.objects.get().parameters == {"nofile": "2048"}
    said, is_error = launcher.said("plan_run", **NAMES, parameters={"nofile": "many"})
    assert (is_error, said) == (True, "Parameter nofile: 'many' is not of type int. (field: parameters.nofile)")


def test_a_plan_is_kept_whole_and_bound_to_its_token_and_its_minutes(
    launcher: Caller, admin: Member, other_admin: Member, make_caller: MakeCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = launcher.call("plan_run", **NAMES)["plan"]
    for caller, text, words in (
        (launcher, plan[:-2] + "xx", "no plan"),
        (launcher, "x", "no plan"),
        (make_caller(admin, "read", "launch"), plan, "another token"),
        (make_caller(other_admin, "read", "launch"), plan, "another token"),
    ):
        said, is_error = caller.said("launch_plan", plan=text)
        assert (is_error, words in said) == (True, True), said
    later = time.time() + 700
    monkeypatch.setattr("django.core.signing.time.time", lambda: later)
    said, is_error = launcher.said("launch_plan", plan=plan)
    assert (is_error, "older than 10 minutes" in said) == (True, True), said
    assert not Run.objects.exists()


def test_what_only_an_admin_may_save_is_not_started_even_for_an_admin(launcher: Caller, admin: Member) -> None:
    save_version(admin, Recipe, "shell", SHELL)
    save_version(admin, Recipe, "text", TEXT)
    save_version(admin, Application, "own", {"server": {"kind": "command", "argv": ["sleep", "9"], "port": 8080}})
    script = {"driver": {"kind": "wrk", "connections": 1, "threads": 1, "script": "os.execute('x')"}}
    save_version(admin, Workload, "lua", {**script, "phases": [{"name": "m", "kind": "measure", "duration_s": 5}]})
    for change in (
        {"recipe": "shell"},
        {"recipe": "text", "parameters": {"path": "/etc/passwd"}},
        {"application": "own"},
        {"workload": "lua"},
    ):
        said, is_error = launcher.said("plan_run", **{**NAMES, **change})
        assert (is_error, "An assistant does not start that" in said) == (True, True), said
    assert "plan" in launcher.call("plan_run", **{**NAMES, "recipe": "text"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"recipe": "no such"}, "field: recipe"),
        ({"recipe": "limits@7"}, "field: recipe"),
        ({"recipe": "limits/versions"}, "recipe: "),
        ({"sut": "sut-1/canaries"}, "sut: "),
        ({"drivers": ["no such"]}, "no host"),
        ({"members": {"database": "sut-1/profiles"}}, "members.database: "),
        ({"spec": {}}, "spec: "),
        ({"labels": {f"label{n}": hashlib.sha512(str(n).encode()).hexdigest() for n in range(40)}}, "field: labels"),
    ],
)
def test_a_plan_that_does_not_fit_says_which_field(launcher: Caller, change: dict[str, Any], words: str) -> None:
    said, is_error = launcher.said("plan_run", **{**NAMES, **change})
    assert (is_error, words in said) == (True, True), said


def test_a_plan_of_another_teams_names_finds_nothing(
    launcher: Caller, other_admin: Member, make_caller: MakeCaller
) -> None:
    said, is_error = make_caller(other_admin, "read", "launch").said("plan_run", **NAMES)
    assert (is_error, said) == (True, "There is no application 'tomcat' (field: application).")


def test_a_viewer_with_such_a_token_starts_nothing(
    launcher: Caller, admin: Member, make_member: MakeMember, make_caller: MakeCaller
) -> None:
    member = make_member(admin.team, Role.LAUNCHER, "lin")
    caller = make_caller(member, "read", "launch")
    Member.objects.filter(pk=member.pk).update(role=Role.VIEWER)
    said, is_error = caller.said("plan_run", **NAMES)
    assert is_error, said
    assert not Run.objects.exists()
