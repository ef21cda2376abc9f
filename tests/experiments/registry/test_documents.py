"""Versions of documents, and YAML in and out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.drivers.jmeter.jmx import MAX_PLAN_CHARS
from experiments.models import Application, AuditEntry, Member, Recipe, Role, Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.versions import (
    archive,
    diff_versions,
    parse_yaml,
    save_version,
    to_yaml,
    unarchive,
)
from experiments.registry.errors import Forbidden, RequestError
from tests.experiments.conftest import RECIPE, WORKLOAD, MakeMember

IN_ORDER = {
    "parameters": {name: {"type": "int", "default": 1} for name in ("workers", "a_long_one", "b")},
    "steps": [
        {"kind": "environment", "variables": {"WORKERS": "${workers}", "A": "${a_long_one}"}},
        {"kind": "sysctl", "values": {"vm.swappiness": "${b}", "kernel.watchdog": "0"}},
    ],
}


def test_what_a_document_lists_stays_in_the_order_in_which_it_was_written(admin: Member) -> None:
    pk = save_version(admin, Recipe, "in order", IN_ORDER).pk
    read = Recipe.objects.get(pk=pk)
    assert json.dumps(read.body["parameters"]) == json.dumps(content_of(read).model_dump(mode="json")["parameters"])
    assert list(content_of(read).parameters) == list(IN_ORDER["parameters"])
    assert json.dumps(read.body["steps"]) == json.dumps(IN_ORDER["steps"])
    assert json.dumps(parse_yaml(to_yaml(read))) == json.dumps(read.body)
    read.note = "with words"
    read.save()
    read.refresh_from_db()
    assert json.dumps(read.body["steps"]) == json.dumps(IN_ORDER["steps"])
    assert save_version(admin, Recipe, "in order", read.body).pk == pk


def test_a_save_is_a_new_version_and_the_same_body_is_none(admin: Member) -> None:
    first = save_version(admin, Recipe, "limits", RECIPE)
    same = save_version(admin, Recipe, "limits", RECIPE)
    other = save_version(admin, Recipe, "limits", {**RECIPE, "description": "with words"})
    assert (first.version, same.pk, other.version) == (1, first.pk, 2)
    assert AuditEntry.objects.filter(action="recipe.save").count() == 2


@pytest.mark.parametrize(
    "model, body, field",
    [
        (Recipe, {"stepz": []}, "stepz"),
        (Recipe, {"steps": [{"kind": "magic"}]}, "steps.0.kind"),
        (
            Recipe,
            {"steps": [{"kind": "${kind}"}], "parameters": {"kind": {"type": "str", "default": "limits"}}},
            "steps.0.kind",
        ),
        (Recipe, {"steps": [{"kind": "limits", "nofile": "many"}]}, "steps"),
        (Recipe, {"parameters": {"n": {"type": "int", "default": "x"}}}, ""),
        (Recipe, {"steps": [{"kind": "sysctl", "values": {"kernel.hostname": "a"}}]}, "steps"),
        (
            Recipe,
            {
                "parameters": {"open": {"type": "str"}},
                "steps": [
                    {"kind": "environment", "variables": {"A": "${open}"}},
                    {"kind": "sysctl", "values": {"kernel.hostname": "a"}},
                ],
            },
            "steps",
        ),
        (
            Recipe,
            {
                "parameters": {"open": {"type": "str"}},
                "steps": [{"kind": "sysctl", "values": {"kernel.hostname": "${open}", "vm.swappiness": "1"}}],
            },
            "steps.0",
        ),
        (Recipe, {"steps": [{"kind": "limits"}] * 10_000}, "steps"),
        (Workload, {**WORKLOAD, "phases": []}, ""),
        (
            Workload,
            {**WORKLOAD, "driver": {"kind": "wrk", "connections": float("nan"), "threads": 1}},
            "driver.connections",
        ),
        (Application, {"server": {"kind": "tomcat", "home": "/opt/../etc", "port": 99999}}, "server.port"),
    ],
)
def test_a_document_that_does_not_fit_names_the_field(admin: Member, model: Any, body: Any, field: str) -> None:
    with pytest.raises(RequestError) as caught:
        save_version(admin, model, "x", body)
    assert caught.value.field == field
    assert not model.objects.exists()


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "command", "run": "true", "undo": "true"},
        {"kind": "packages", "packages": ["sysstat"]},
        {"kind": "service", "name": "irqbalance", "running": False},
        {"kind": "file", "path": "bin/setenv.sh", "content": "id"},
        {"kind": "jvm_options", "options": ["-javaagent:/tmp/agent.jar"]},
        {"kind": "environment", "variables": {"LD_PRELOAD": "/tmp/own.so"}},
    ],
    ids=lambda step: step["kind"],
)
def test_what_runs_programs_of_its_author_needs_an_admin(
    admin: Member, make_member: MakeMember, step: dict[str, Any]
) -> None:
    editor = make_member(admin.team, Role.EDITOR)
    with pytest.raises(Forbidden):
        save_version(editor, Recipe, "raw", {"steps": [step]})
    stored = save_version(admin, Recipe, "raw", {"steps": [step]})
    assert content_of(stored).resolve({})[0].kind == step["kind"]


@pytest.mark.parametrize(
    "path, needs_admin",
    [
        ("webapps/ROOT/x.html", False),
        ("conf/server.xml", True),
        ("/etc/app/x.conf", True),
        ("${place}", True),
        ("${place}/x", True),
    ],
)
def test_files_outside_the_instance_need_an_admin(
    admin: Member, make_member: MakeMember, path: str, needs_admin: bool
) -> None:
    body = {
        "parameters": {"place": {"type": "str", "default": "conf"}},
        "steps": [{"kind": "file", "path": path, "content": "x"}],
    }
    editor = make_member(admin.team, Role.EDITOR)
    if needs_admin:
        with pytest.raises(Forbidden):
            save_version(editor, Recipe, "file", body)
    assert save_version(admin if needs_admin else editor, Recipe, "file", body).version == 1


def test_a_launcher_saves_no_document(team: Any, make_member: MakeMember) -> None:
    with pytest.raises(Forbidden):
        save_version(make_member(team, Role.LAUNCHER), Recipe, "limits", RECIPE)


def test_yaml_goes_out_and_comes_back_unchanged(admin: Member) -> None:
    saved = save_version(admin, Recipe, "limits", {**RECIPE, "description": "on\n  two: lines\n0644"})
    assert save_version(admin, Recipe, "copy", parse_yaml(to_yaml(saved))).body == saved.body


def test_the_difference_of_two_versions_is_by_path(admin: Member) -> None:
    a = save_version(admin, Workload, "w", WORKLOAD)
    b = save_version(admin, Workload, "w", {**WORKLOAD, "path": "/x"})
    assert [(d.path, d.values) for d in diff_versions(a, b)] == [("path", ("/", "/x"))]


def test_an_archived_name_leaves_the_lists_and_a_save_brings_it_back(admin: Member) -> None:
    archive(admin, save_version(admin, Recipe, "limits", RECIPE))
    assert not Recipe.objects.newest_versions().exists()
    assert list(Recipe.objects.archived_names().values_list("name", "version")) == [("limits", 1)]
    assert save_version(admin, Recipe, "limits", RECIPE).version == 2
    assert not Recipe.objects.archived_names().exists()


def test_an_archived_name_is_put_back_with_its_versions_by_who_may_archive(
    admin: Member, make_member: MakeMember
) -> None:
    save_version(admin, Recipe, "limits", RECIPE)
    newest = save_version(admin, Recipe, "limits", {**RECIPE, "description": "second"})
    editor = make_member(admin.team, Role.EDITOR)
    archive(editor, newest)
    with pytest.raises(Forbidden):
        unarchive(make_member(admin.team, Role.LAUNCHER, "launcher"), newest)
    unarchive(editor, newest)
    unarchive(editor, newest)
    assert [one.pk for one in Recipe.objects.newest_versions()] == [newest.pk]
    assert not Recipe.objects.filter(archived=True).exists()
    assert [entry.action for entry in AuditEntry.objects.order_by("pk") if "archive" in entry.action] == [
        "recipe.archive",
        "recipe.unarchive",
    ]


def test_plain_words_stay_text_where_yaml_1_1_would_guess() -> None:
    text = "a: on\nb: 0644\nc: 12:30\nd: 2026-01-31\ne: 1e3\nf: 0.5\ng: true\nh: ~\ni: -7\nj: 'true'\nk: 1_000\n"
    assert parse_yaml(text) == {
        "a": "on", "b": "0644", "c": "12:30", "d": "2026-01-31", "e": 1000.0, "f": 0.5, "g": True, "h": None,
        "i": -7, "j": "true", "k": "1_000",
    }  # fmt: skip


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text, said",
    [
        (BOMB, "more than 50000 values"),
        ("a: 1\na: 2\n", "line 2: the key 'a' stands here twice"),
        ("a: !!python/object:os.system x", "tags such as"),
        ("a: &a [*a]", "inside or before its anchor"),
        ("a: *b", ""),
        ("[" * 1000, "deeper than 20"),
        ("a: [" * 30, "deeper than 20"),
        ("- 1\n- 2\n", "must be a mapping"),
        ("a: 1\n---\nb: 2\n", "more than one document"),
        ("a: 1e999", "too large"),
        ('a: "\\0"', "NUL"),
        ("? [a]\n: b", "a key must be plain text"),
        ("a: b: c", "line 1"),
        ("x" * 3_000_001, "at most 3,000,000 characters"),
        ("\x00", ""),
        ("a: 'open", "line"),
        ("", "must be a mapping"),
    ],
)
def test_yaml_that_could_harm_is_refused_with_a_sentence(text: str, said: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_yaml(text)
    assert said in caught.value.message
    assert caught.value.field == "yaml"


def test_the_largest_test_plan_goes_out_as_yaml_and_comes_back(admin: Member) -> None:
    head, foot = '<jmeterTestPlan version="1.2"><hashTree><DebugSampler testname="', '"/></hashTree></jmeterTestPlan>'
    plan = head + "\tä'" * ((MAX_PLAN_CHARS - len(head + foot)) // 3) + foot
    body = {"driver": {"kind": "jmeter", "jmx": plan}, "phases": WORKLOAD["phases"]}
    saved = save_version(admin, Workload, "plan", body)
    assert save_version(admin, Workload, "copy", parse_yaml(to_yaml(saved))).body == saved.body
    with pytest.raises(RequestError, match=r"driver\.jmx"):
        save_version(admin, Workload, "plan", {**body, "driver": {"kind": "jmeter", "jmx": plan + "xxx"}})


def test_a_load_tool_that_may_run_programs_is_saved_by_an_admin_only(admin: Member, make_member: MakeMember) -> None:
    editor = make_member(admin.team, Role.EDITOR, "editor-of-plans")
    plan = '<jmeterTestPlan version="1.2"><hashTree><SystemSampler testname="x"/></hashTree></jmeterTestPlan>'
    body = {
        "driver": {"kind": "jmeter", "jmx": plan, "allow_shell": True},
        "phases": [{"name": "measure", "kind": "measure", "duration_s": 10}],
    }
    with pytest.raises(Forbidden, match="only an admin"):
        save_version(editor, Workload, "plan", body)
    assert save_version(admin, Workload, "plan", body).version == 1
    with pytest.raises(RequestError, match="OS Process Sampler 'x'"):
        save_version(admin, Workload, "plan", {**body, "driver": {"kind": "jmeter", "jmx": plan}})
