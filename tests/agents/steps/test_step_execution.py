"""Steps on real files with a real shell: a file tree in place of /sys and /proc, and hostile text in every field."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from agents.base.cpuset import format_cpus
from agents.base.errors import PlanError
from agents.base.process_start import ProcessStart
from agents.steps.base.step import LaunchStep, StepContext
from agents.steps.cpu_online import CpuOnlineStep
from agents.steps.file import FileStep
from tests import needs
from tests.agents.steps.step_shell import STEP, context, host_step, run, state

__all__ = ["context"]

SERVER_XML = b"""<?xml version='1.0' encoding='utf-8'?>
<!-- the licence -->
<Server port="8005">
  <Service name="Catalina">
    <Connector port="8080"/>
  </Service>
</Server>
"""


def test_a_new_file_is_written_with_its_mode_and_removed_again(context: StepContext) -> None:
    step = host_step({"kind": "file", "path": "conf/a.conf", "content": " a\n\n", "mode": "0640"})
    path = Path(context.path("conf/a.conf"))
    before = state(step, context)
    for command in step.apply(context, before):
        run(command)
    assert path.read_bytes() == b" a\n\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert {o.result for o in step.outcomes(before, state(step, context))} == {"applied"}
    assert step.apply(context, state(step, context)) == ()
    for command in step.revert(context, before) * 2:
        run(command)
    assert os.listdir(path.parent) == []
    assert state(step, context) == before


@pytest.mark.parametrize("content", [b"old\n", b"", b"\xff\xfe\0binary", b"base64:not really", "ä€\r\n".encode()])
def test_an_old_file_comes_back_to_the_byte_with_its_mode(context: StepContext, content: bytes) -> None:
    path = Path(context.path("conf/a.conf"))
    path.write_bytes(content)
    path.chmod(0o604)
    step = host_step({"kind": "file", "path": "conf/a.conf", "content": "new"})
    before = state(step, context)
    for command in (*step.apply(context, before), *step.revert(context, before)):
        run(command)
    assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert state(step, context) == before


def test_extended_attributes_survive_the_replacement_of_a_file(context: StepContext) -> None:
    path = Path(context.path("conf/a.conf"))
    path.write_text("old")
    try:
        os.setxattr(path, "user.team", b"performance")
    except OSError:
        needs.require(False, "a file system with extended attributes", needs.OTHER_DISK)
    step = host_step({"kind": "file", "path": "conf/a.conf", "content": "new"})
    for command in step.apply(context, state(step, context)):
        run(command)
    assert os.getxattr(path, "user.team") == b"performance"


def test_links_directories_and_ways_out_of_the_instance_are_refused(context: StepContext, tmp_path: Path) -> None:
    conf = Path(context.path("conf"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "target").write_text("mine")
    (conf / "link").symlink_to(outside / "target")
    (conf / "hard").hardlink_to(outside / "target")
    (conf / "away").symlink_to(outside)
    (conf / "directory").mkdir()
    (conf / "proc").symlink_to("/proc")
    refusals = {
        "conf/link": "symbolic link",
        "conf/hard": "2 hard links",
        "conf/away/target": "out of the instance",
        "conf/directory": "not a regular file",
        "conf/missing/file": "directory does not exist",
        f"{conf}/proc/version": "none of the places",
    }
    for path, reason in refusals.items():
        with pytest.raises(PlanError, match=reason):
            state(FileStep(path=path, content="x"), context)
    assert (outside / "target").read_text() == "mine"


def test_a_link_that_appears_after_the_probe_is_not_followed(context: StepContext, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    step = host_step({"kind": "file", "path": "conf/a", "content": "x"})
    before = state(step, context)
    Path(context.path("conf/a")).symlink_to(target)
    for command in (*step.apply(context, before), *step.revert(context, before)):
        done = subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=300, check=False)
        assert done.returncode != 0
    assert target.read_text() == "mine"


def test_an_xml_file_is_edited_in_place_and_comes_back(context: StepContext) -> None:
    path = Path(context.path("conf/server.xml"))
    path.write_bytes(SERVER_XML)
    path.chmod(0o600)
    edits = [
        {"op": "set", "select": "Service/Connector", "attributes": {"maxThreads": 7}},
        {"op": "add", "under": "Service", "tag": "Executor", "attributes": {"name": "pool"}, "position": "first"},
        {"op": "set", "select": "Server", "attributes": {"port": -1}},
    ]
    step = host_step({"kind": "xml_edit", "path": "conf/server.xml", "edits": edits})
    before = state(step, context)
    for command in step.apply(context, before):
        run(command)
    text = path.read_text()
    assert text.startswith("<?xml version='1.0' encoding='utf-8'?>\n<!-- the licence -->\n<Server port=\"-1\">\n")
    assert '\n    <Executor name="pool"/>\n    <Connector port="8080" maxThreads="7"/>\n  </Service>' in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = {o.setting: (o.before, o.effective, o.result) for o in step.outcomes(before, state(step, context))}
    assert found == {
        "Server/Service/Connector@maxThreads": (None, "7", "applied"),
        "Server/Service/Executor@name": (None, "pool", "applied"),
        "Server@port": ("8005", "-1", "applied"),
    }
    for command in step.revert(context, before) * 2:
        run(command)
    assert path.read_bytes() == SERVER_XML


def make_cpus(context: StepContext, count: int) -> Path:
    root = Path(context.sysfs) / "devices/system/cpu"
    for cpu in range(count):
        (root / f"cpu{cpu}").mkdir(parents=True)
        if cpu:
            (root / f"cpu{cpu}/online").write_text("1\n")
    (root / "cpufreq").mkdir()
    (root / "present").write_text(f"0-{count - 1}\n")
    say_online(root)
    return root


def say_online(root: Path) -> None:
    """What the kernel does by itself: `online` lists the CPUs whose files say 1, and CPU 0."""
    on = [int(f.parent.name[3:]) for f in root.glob("cpu*/online") if f.read_text().strip() == "1"]
    (root / "online").write_text(format_cpus([0, *on]) + "\n")


def test_exactly_the_named_cpus_are_put_online_and_the_previous_set_comes_back(context: StepContext) -> None:
    root = make_cpus(context, 12)
    (root / "cpu11/online").write_text("0\n")
    say_online(root)
    step = CpuOnlineStep(online="0,10-11")
    before = state(step, context)
    assert before == {"online": "0-10", "present": "0-11", "switchable": "1-11"}
    for command in step.apply(context, before):
        run(command)
    say_online(root)
    after = state(step, context)
    assert [o.result for o in step.outcomes(before, after)] == ["applied"]
    assert after["online"] == "0,10-11"
    for command in step.revert(context, before) * 2:
        run(command)
    say_online(root)
    assert state(step, context) == before


def test_a_cpu_that_the_kernel_keeps_fails_the_step_after_the_others_were_switched(context: StepContext) -> None:
    root = make_cpus(context, 4)
    (root / "cpu2/online").unlink()
    (root / "cpu2/online").mkdir()
    (command,) = CpuOnlineStep(online="0").apply(context, {"online": "0-3", "present": "0-3", "switchable": "1-3"})
    done = subprocess.run(command.argv, capture_output=True, timeout=300, check=False)
    assert done.returncode == 1
    assert [(root / f"cpu{n}/online").read_text() for n in (1, 3)] == ["0\n", "0\n"]


def test_kernel_parameters_are_written_and_read_back_from_files(context: StepContext) -> None:
    files = {
        "net/core/somaxconn": "4096\n",
        "net/ipv4/ip_local_port_range": "32768\t60999\n",
        "net/core/rmem_max": "9\n",
    }
    root = Path(context.procfs) / "sys"
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / "net/core/rmem_max").chmod(0o444)
    values = {
        "net.core.somaxconn": 32768,
        "net.ipv4.ip_local_port_range": "1024 65000",
        "net.core.rmem_max": 10,
        "net.ipv4.tcp_tw_recycle": 1,
    }
    step = host_step({"kind": "sysctl", "values": values, "unsupported": "skip"})
    before = state(step, context)
    for command in step.apply(context, before):
        run(command)
    results = {o.setting: o.result for o in step.outcomes(before, state(step, context))}
    assert list(results.values()) == ["applied", "applied", "unsupported", "unsupported"]
    assert (root / "net/ipv4/ip_local_port_range").read_text() == "1024 65000\n"
    for command in step.revert(context, before) * 2:
        run(command)
    assert state(step, context) == before
    assert not (root / "net/ipv4/tcp_tw_recycle").exists()


def test_a_refused_kernel_parameter_does_not_keep_the_others_from_being_set(context: StepContext) -> None:
    root = Path(context.procfs) / "sys/net/core"
    root.mkdir(parents=True)
    (root / "somaxconn").write_text("4096\n")
    (root / "busy_poll").symlink_to("/dev/full")
    step = host_step({"kind": "sysctl", "values": {"net.core.busy_poll": 50, "net.core.somaxconn": 1}})
    before = {"net.core.busy_poll": "0", "net.core.somaxconn": "4096", "read-only": ""}
    for command in step.apply(context, before):
        run(command)
    assert (root / "somaxconn").read_text() == "1\n"


def test_a_command_step_runs_is_seen_and_is_undone(context: StepContext, tmp_path: Path) -> None:
    step = host_step(
        {
            "kind": "command",
            "run": 'printf %s "$2" >"$1"',
            "undo": 'rm -f -- "$1"',
            "observe": 'cat -- "$1" 2>/dev/null || echo none',
            "expect": "x y",
            "arguments": [str(tmp_path / "a file"), "x y"],
        }
    )
    before = state(step, context)
    for command in step.apply(context, before):
        run(command)
    assert [o.result for o in step.outcomes(before, state(step, context))] == ["applied"]
    for command in step.revert(context, before) * 2:
        run(command)
    assert state(step, context) == before


HOSTILE = [
    "; touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a\ntouch PWNED",
    "'; touch PWNED; '",
    '"; touch PWNED; "',
]
HOSTILE += [
    "|touch PWNED",
    "&touch PWNED",
    "-rf",
    "--help",
    "%s%n",
    "\\",
    "*",
    "~root",
    "${IFS}",
    "a\0b",
    "]]>",
    "<!--",
]


@pytest.mark.parametrize("text", [text for text in HOSTILE if "\0" not in text])
@pytest.mark.parametrize("kind", ["service", "packages"])
def test_hostile_names_of_services_and_packages_never_reach_a_shell(kind: str, text: str) -> None:
    raws: dict[str, dict[str, object]] = {
        "service": {"name": text, "running": True},
        "packages": {"packages": [text]},
    }
    with pytest.raises(ValidationError):
        STEP.validate_python({"kind": kind, **raws[kind]})


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_refused_or_arrives_to_the_letter(
    context: StepContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(context.path("conf/server.xml")).write_bytes(SERVER_XML)
    cpus, sysctls = make_cpus(context, 2), Path(context.procfs) / "sys/net/core"
    sysctls.mkdir(parents=True)
    (sysctls / "somaxconn").write_text("1\n")
    Path(context.path("conf/plain.properties")).write_text("note=old\n")
    raws: list[dict[str, object]] = [
        {"kind": "file", "path": text, "content": "x"},
        {"kind": "file", "path": f"conf/{text}", "content": "x"},
        {"kind": "file", "path": "conf/plain", "content": text},
        {"kind": "file", "path": "conf/mode", "content": "x", "mode": text},
        {"kind": "xml_edit", "path": text, "edits": [{"op": "remove", "select": "Service"}], "unsupported": "skip"},
        _edit(select=text),
        _edit(select=f"Service/Connector[@port='{text}']"),
        _edit(attributes={text: "x"}),
        _edit(attributes={"note": text}),
        {"kind": "xml_edit", "path": "conf/server.xml", "edits": [{"op": "add", "under": "Service", "tag": text}]},
        {"kind": "sysctl", "values": {text: "1"}},
        {"kind": "sysctl", "values": {f"net.core.{text}": "1"}, "unsupported": "skip"},
        {"kind": "sysctl", "values": {"net.core.somaxconn": text}},
        {"kind": "cpu_online", "online": text},
        {"kind": "properties", "path": "conf/plain.properties", "values": {text: "x"}},
        {"kind": "properties", "path": "conf/plain.properties", "values": {"note": text}},
        {"kind": "properties", "path": "conf/plain.properties", "remove": [text]},
        {"kind": "thp", "enabled": text},
        {"kind": "governor", "governor": text, "unsupported": "skip"},
        {"kind": "irq_affinity", "cpus": "0", "devices": [text], "unsupported": "skip"},
        {"kind": "command", "run": 'printf %s "$1" >argument', "undo": ":", "observe": ":", "arguments": [text]},
        {"kind": "jvm_options", "options": [text]},
        {"kind": "environment", "variables": {text: "x"}},
        {"kind": "environment", "variables": {"A": text}},
        {"kind": "affinity", "cpus": text},
        {"kind": "limits", "nofile": text},
    ]
    for raw in raws:
        _try(raw, context)
    assert not list(tmp_path.rglob("PWNED"))
    plain, argument = Path(context.path("conf/plain")), tmp_path / "argument"
    assert not plain.exists() or plain.read_text() == text
    assert ("\0" in text) != argument.exists()
    assert not argument.exists() or argument.read_text() == text
    assert sorted(p.name for p in cpus.iterdir()) == ["cpu0", "cpu1", "cpufreq", "online", "present"]


def _edit(**changes: object) -> dict[str, object]:
    edit = {"op": "set", "select": "Service/Connector", "attributes": {"note": "x"}, **changes}
    return {"kind": "xml_edit", "path": "conf/server.xml", "edits": [edit]}


def _try(raw: dict[str, object], context: StepContext) -> None:
    """Applies the step and takes it back; a refusal at any stage is a fine answer, a failing command is not."""
    try:
        step = STEP.validate_python(raw)
        if isinstance(step, LaunchStep):
            step.contribute(ProcessStart())
            return
        before = state(step, context)
        for command in step.apply(context, before):
            run(command)
        after = state(step, context)
        assert {o.result for o in step.outcomes(before, after)} <= {"applied", "unchanged", "unsupported"}
        if raw["kind"] != "file" or raw["path"] != "conf/plain":
            for command in step.revert(context, before):
                run(command)
            assert state(step, context) == before
    except (ValidationError, PlanError):
        pass
