"""The whole state of a file: mode, owner, ACL, extended attributes, flags, room on the disk; and edits of key=value."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from agents.base.errors import PlanError
from agents.steps.base.step import StepContext
from agents.steps.file import FileStep
from agents.steps.properties import PropertiesStep
from tests import needs
from tests.agents.steps.step_shell import apply, context, fails, host_step, results, revert, run, state
from tests.properties import given, st

__all__ = ["context"]

CATALINA = (
    b"# Licensed\r\n! and so on\r\n\r\n"
    b"package.access=sun.,\\\r\n    org.apache.catalina.,\\\r\n    org.apache.tomcat.\r\n"
    b"tomcat.util.scan = false\r\n\xe9t\xe9=1\r\nlast=x"
)


def test_an_acl_comes_back_also_for_a_file_that_somebody_deleted(context: StepContext) -> None:
    needs.require_program("setfacl")
    path = Path(context.path("conf/a.conf"))
    path.write_text("old")
    path.chmod(0o640)
    done = subprocess.run(["setfacl", "-m", "u:12345:rw", path], capture_output=True, check=False)
    needs.require(done.returncode == 0, "a file system with ACLs", needs.OTHER_DISK)
    step = FileStep(path="conf/a.conf", content="new")
    before = apply(step, context)
    assert "acl user:12345:rw-" in (before["attributes"] or "")
    assert {**before, "content": "new"} == state(step, context)
    revert(step, context, before)
    assert state(step, context) == before
    path.unlink()
    revert(step, context, before)
    assert state(step, context) == before


def test_extended_attributes_come_back_also_for_a_file_that_somebody_deleted(context: StepContext) -> None:
    needs.require_program("setfattr")
    path = Path(context.path("conf/a.conf"))
    path.write_text("old")
    try:
        os.setxattr(path, "user.team", b"per=form\nance")
        os.setxattr(path, "user.empty", b"")
    except OSError:
        needs.require(False, "a file system with extended attributes", needs.OTHER_DISK)
    step = FileStep(path="conf/a.conf", content="new")
    before = apply(step, context)
    assert os.getxattr(path, "user.team") == b"per=form\nance"
    path.unlink()
    revert(step, context, before)
    assert os.getxattr(path, "user.team") == b"per=form\nance"
    assert state(step, context) == before


@needs.root("it gives a file to somebody else")
def test_owner_and_special_mode_bits_come_back(context: StepContext) -> None:
    path = Path(context.path("conf/a.conf"))
    path.write_text("old")
    os.chown(path, 12345, 54321)
    path.chmod(0o2640)
    step = FileStep(path=str(path), content="new", mode="0600")
    before = apply(step, context)
    assert (path.stat().st_uid, path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (12345, 54321, 0o600)
    path.unlink()
    revert(step, context, before)
    assert (path.stat().st_uid, path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (12345, 54321, 0o2640)


@needs.root("it sets flags of files")
@pytest.mark.parametrize(("flag", "reason"), [("i", "immutable"), ("a", "append-only")])
@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_file_that_cannot_be_replaced_is_refused_before_anything_is_done(
    context: StepContext, flag: str, reason: str, what: str
) -> None:
    path = Path(context.path("conf/a.conf"))
    path.write_text("old")
    flagged = path if what == "file" else path.parent
    set_flag = subprocess.run(["chattr", f"+{flag}", flagged], capture_output=True, check=False)
    needs.require(set_flag.returncode == 0, "a file system with the flags of chattr", needs.OTHER_DISK)
    try:
        with pytest.raises(PlanError, match=reason):
            state(FileStep(path="conf/a.conf", content="new"), context)
    finally:
        subprocess.run(["chattr", f"-{flag}", flagged], check=True)


@needs.marked(os.geteuid() != 0, "a plain user (root may write everywhere)", "run it without root")
@pytest.mark.parametrize(
    ("mode", "said"),
    [(0o500, "its directory cannot be written"), (0o600, "its directory cannot be entered by this login")],
)
def test_a_directory_without_the_right_to_write_or_to_enter_is_refused(
    context: StepContext, mode: int, said: str
) -> None:
    Path(context.path("conf")).chmod(mode)
    with pytest.raises(PlanError, match=said):
        state(FileStep(path="conf/a.conf", content="new"), context)
    Path(context.path("conf")).chmod(0o700)


def test_a_full_disk_is_told_before_the_file_is_touched_and_a_read_only_one_before_that(tmp_path: Path) -> None:
    step = FileStep(path=str(tmp_path / "disk/a.conf"), content="x" * 100_000)
    nowhere = StepContext("/")
    (write,) = step.apply(nowhere, {"content": None, "mode": None})
    probe = step.probe(nowhere)
    mounted = """mkdir "$1/disk"; mount -t tmpfs -o size=64k x "$1/disk"
    echo old >"$1/disk/a.conf"; shift
    "$@" <"$content"; status=$?; cat "${disk:?}/a.conf"; ls -A "$disk"; exit $status"""
    content = tmp_path / "content"
    content.write_text(step.content)
    environment = {**os.environ, "content": str(content), "disk": str(tmp_path / "disk")}
    own = [*needs.own_namespaces("mount"), "sh", "-c", mounted, "sh", str(tmp_path)]
    done = subprocess.run([*own, *write.argv], capture_output=True, env=environment, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (1, b"old\na.conf\n")
    assert b"its disk has no room for 100000 bytes" in done.stderr
    (tmp_path / "disk").rmdir()
    own[own.index(mounted)] = mounted.replace("shift\n", 'mount -o remount,bind,ro "$1/disk"; shift\n')
    done = subprocess.run([*own, *probe.argv], capture_output=True, env=environment, timeout=300, check=False)
    assert b"refused its directory cannot be written" in done.stdout


def test_content_that_is_cut_on_the_way_replaces_nothing(context: StepContext) -> None:
    path = Path(context.path("conf/a.conf"))
    path.write_text("old")
    step = FileStep(path="conf/a.conf", content="new and longer")
    (command,) = step.apply(context, state(step, context))
    done = subprocess.run(command.argv, input=command.stdin[:3], capture_output=True, timeout=300, check=False)
    assert done.returncode == 1
    assert b"did not arrive whole" in done.stderr
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["a.conf"]


def test_the_rest_of_a_write_that_was_killed_goes_away_with_the_next_one(context: StepContext) -> None:
    conf = Path(context.path("conf"))
    step = FileStep(path="conf/a.conf", content="new")
    before = state(step, context)
    (conf / ".benchhub.a1B2c3").write_text("ne")
    revert(step, context, before)
    assert os.listdir(conf) == []


def test_a_file_of_an_instance_that_is_gone_needs_no_undo(context: StepContext) -> None:
    path = Path(context.path("conf/a.conf"))
    new, old = FileStep(path="conf/new", content="x"), FileStep(path="conf/a.conf", content="x")
    path.write_text("old")
    commands = [*new.revert(context, state(new, context)), *old.revert(context, state(old, context))]
    shutil.rmtree(context.instance)
    for command in commands:
        run(command)
    assert not Path(context.instance).exists()
    assert "directory does not exist" in fails(new.write(context, "x", "0644", {}))


def test_a_properties_file_keeps_its_comments_order_line_ends_and_bytes(context: StepContext) -> None:
    path = Path(context.path("conf/catalina.properties"))
    path.write_bytes(CATALINA)
    step = host_step(
        {
            "kind": "properties",
            "path": "conf/catalina.properties",
            "values": {"package.access": "", "tomcat.util.scan": True, "new": "ä = $HOME"},
            "remove": ["last"],
        }
    )
    before = apply(step, context)
    assert path.read_bytes() == (
        b"# Licensed\r\n! and so on\r\n\r\npackage.access=\r\ntomcat.util.scan = true\r\n\xe9t\xe9=1\r\n"
        + "new=ä = $HOME\r\n".encode()
    )
    assert set(results(step, context, before).values()) == {"applied"}
    assert step.apply(context, state(step, context)) == ()
    revert(step, context, before)
    assert path.read_bytes() == CATALINA


@pytest.mark.parametrize(
    ("separator", "data", "expected"),
    [
        ("=", b"", b"a=1\n"),
        ("=", b"a=0", b"a=1"),
        ("=", b"a=0\\\n\\\n0\nb=2\n", b"a=1\nb=2\n"),
        ("=", b"b=2\\", b"b=2\\\n\na=1\n"),
        ("=", b"b=2\\\\", b"b=2\\\\\na=1\n"),
        ("=", b"#a=0\\\na=3\n", b"#a=0\\\na=1\n"),
        ("=", b"\ta\t=\t0\r", b"\ta\t=\t1\r"),
        ("=", b"aa=0\na.a=0\n", b"aa=0\na.a=0\na=1\n"),
        ("=", b"a=1\na=0\n", b"a=1\na=1\n"),
        (":", b"a: 0\nb = 1\n", b"a: 1\nb = 1\n"),
        (":", b"b: 0\n", b"b: 0\na: 1\n"),
        (" ", b"a   0 # why\nb\n", b"a   1\nb\n"),
        (" ", b"b\n", b"b\na 1\n"),
    ],
)
def test_lines_are_edited_in_place_or_added_behind_the_last(separator: str, data: bytes, expected: bytes) -> None:
    step = PropertiesStep.model_validate({"path": "x", "values": {"a": 1}, "separator": separator})
    assert step.edit(data) == expected
    assert step.edit(expected) == expected


LINE = st.text(st.sampled_from("ab=: \\\n\r#!é"), max_size=40)


@given(LINE.map(str.encode), st.sampled_from("=: "))
def test_an_edit_reads_back_and_touches_no_other_key(data: bytes, separator: str) -> None:
    step = PropertiesStep.model_validate({"path": "x", "values": {"key": "v \\\\ =:"}, "separator": separator})
    edited = step.edit(data)
    before, after = ({"content": text.decode(), "mode": "0644"} for text in (data, edited))
    (outcome,) = step.outcomes(before, after)
    assert (outcome.result, outcome.effective) == ("applied", "v \\\\ =:")
    removed = PropertiesStep.model_validate({"path": "x", "remove": ["key"], "separator": separator}).edit(edited)
    assert removed.startswith(data)
    assert removed[len(data) :].strip(b"\r\n") == b""


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "give values"),
        ({"values": {"a": "1"}, "remove": ["a"]}, "set and removed"),
        ({"values": {"a=b": "1"}}, "pattern"),
        ({"values": {"#a": "1"}}, "pattern"),
        ({"values": {"a": "1\n2"}}, "one line"),
        ({"values": {"a": "1\\"}}, "backslash"),
        ({"values": {"a": " 1"}}, "blank"),
        ({"values": {"a": "1"}, "separator": "->"}, "separator"),
    ],
)
def test_properties_that_the_file_cannot_hold_are_refused(more: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        PropertiesStep.model_validate({"path": "x", **more})


def test_a_binary_file_is_no_properties_file(context: StepContext) -> None:
    Path(context.path("conf/a")).write_bytes(b"a\0b")
    step = PropertiesStep.model_validate({"path": "conf/a", "values": {"a": "1"}})
    with pytest.raises(PlanError, match="conf/a: this is no text file"):
        apply(step, context)


INI = b"; port = 9\n[client]\nport = 1\n\n[mysqld]\n;port = 9\nport = 3306\nold = 1\n\n[other]\nport = 2\n"


@pytest.mark.parametrize(
    ("data", "section", "expected"),
    [
        (INI, "mysqld", INI.replace(b"port = 3306\nold = 1\n", b"port = 7\nnew=x\n")),
        (INI, "client", INI.replace(b"port = 1\n", b"port = 7\nnew=x\n")),
        (INI, "absent", INI + b"[absent]\nport=7\nnew=x\n"),
        (b"[a]", "a", b"[a]\nport=7\nnew=x\n"),
        (b"[a]\r\nport=1\r\n[b]\r\n", "a", b"[a]\r\nport=7\r\nnew=x\r\n[b]\r\n"),
        (b"", "a", b"[a]\nport=7\nnew=x\n"),
        (b"x=1", "a", b"x=1\n[a]\nport=7\nnew=x\n"),
    ],
)
def test_only_the_section_that_is_meant_is_edited(data: bytes, section: str, expected: bytes) -> None:
    step = PropertiesStep(path="a.ini", section=section, values={"port": "7", "new": "x"}, remove=("old",))
    assert step.edit(data) == expected
    assert step.edit(expected) == expected


def test_a_section_that_is_there_twice_is_refused_and_one_to_clear_is_not_made() -> None:
    with pytest.raises(PlanError, match=r"\[a\] is there 2 times"):
        PropertiesStep(path="a.ini", section="a", values={"x": "1"}).edit(b"[a]\n[b]\n[a]\n")
    assert PropertiesStep(path="a.ini", section="a", remove=("x",)).edit(b"x=1\n") == b"x=1\n"


NGINX = b"worker_processes 1; # as many as CPUs\nhttp {\n    sendfile   on;\n    server { listen 80; }\n}\n"


def test_directives_of_nginx_are_edited_where_they_stand() -> None:
    step = PropertiesStep(path="nginx.conf", separator=" ;", values={"worker_processes": "4", "sendfile": "off"})
    edited = step.edit(NGINX)
    assert edited == NGINX.replace(b"processes 1;", b"processes 4;").replace(b"sendfile   on;", b"sendfile   off;")
    assert step.edit(edited) == edited
    with pytest.raises(PlanError, match="has no directive gzip"):
        PropertiesStep(path="nginx.conf", separator=" ;", values={"gzip": "on"}).edit(NGINX)
    assert PropertiesStep(path="nginx.conf", separator=" ;", remove=("sendfile",)).edit(NGINX).count(b"sendfile") == 0


def test_each_key_of_properties_is_a_setting_of_its_own() -> None:
    step = PropertiesStep(path="a", values={"a": "1", "b": "2"}, remove=("c",))
    assert [(dict(one.values), one.remove) for one in step.parts()] == [
        ({"a": "1"}, ()),
        ({"b": "2"}, ()),
        ({}, ("c",)),
    ]
