"""Whole runs against two real SSH hosts: a small server on one, wrk on the other, and everything that can go wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from typing import Any

import pytest

from agents import events as e
from agents.base.errors import ConnectError
from agents.base.redaction import HIDDEN
from agents.base.session import Session
from agents.record import Record
from agents.remote.ssh import connect
from agents.spec import HostAddress
from tests.agents.run_lab import (
    REFUSED,
    XML_STEP,
    Lab,
    Watched,
    assert_left_as_it_was,
    die_after,
    file_step,
    free_port,
    needs_wrk,
    port_is_free,
    stored,
)
from tests.sshd import cut_connections, eventually

pytestmark = needs_wrk


TAIL = [
    "phase_started stop", "phase_finished stop", "phase_started restore", "phase_finished restore",
    "phase_started verify", "phase_finished verify", "restored",
]  # fmt: skip


async def test_a_run_goes_through_its_phases_and_leaves_nothing(lab: Lab) -> None:
    watched = Watched(lab)
    spec = lab.spec(
        file_step(lab),
        XML_STEP,
        {"kind": "file", "path": "conf/app.conf", "content": "tuned\n"},
        {"kind": "environment", "variables": {"LANG": "C.UTF-8", "IO_THREADS": "4", "DB_PASSWORD": "hush"}},
        {"kind": "limits", "nofile": 900},
        phases=(("warm_up", 1), ("measure", 2)),
    )
    record = await watched.run(spec)
    assert record.failed is None
    assert_left_as_it_was(lab, record)
    phases = [event.phase for event in watched.of(e.PhaseFinished)]
    assert phases == list(e.PHASES)
    assert [event.phase for event in watched.of(e.PhaseStarted)] == list(e.PHASES)
    names = [
        f"{event.kind} {event.phase}" if isinstance(event, e.PhaseStarted | e.PhaseFinished) else event.kind
        for event in watched.events
        if isinstance(event, e.PhaseStarted | e.PhaseFinished | e.Restored)
    ]
    assert names[-7:] == TAIL

    assert [(load.index, load.measured, load.duration_s) for load in watched.of(e.LoadStarted)] == [
        (0, False, 1),
        (1, True, 2),
    ]
    report = record.reports[1]
    assert (report.exit_status, report.measured) == (0, True)
    assert report.report["requests"] > 0
    assert "Requests/sec:" in report.output
    assert len(lab.starts) == 2

    applied = {event.index: event for event in watched.of(e.StepApplied)}
    assert [outcome.result for outcome in applied[1].outcomes] == ["applied"]
    assert [(o.setting, o.effective) for o in applied[2].outcomes] == [("Server/Service/Connector@maxThreads", "8")]
    assert record.reverted == {0, 1, 2, 3}
    assert record.configuration is not None
    values = record.configuration.values
    assert values["process.limits.nofile"] == "900"
    assert values["process.environment.LANG"] == "C.UTF-8"
    assert values["process.environment.IO_THREADS"] == "4", "no list knows this variable, but the recipe sets it"
    assert values["process.environment.DB_PASSWORD"] == HIDDEN
    assert values["files.conf/app.conf"] == "tuned\n"
    assert values["process.cpus"] == spec.application.server.cpus
    assert 'maxThreads="8"' in values["files.conf/server.xml"]
    assert values["load_tool.version"]
    assert not any(str(lab.sut.home) in value for value in values.values())

    channels = {(event.role, name) for event in watched.of(e.Samples) for name in event.values}
    assert {("sut", "cpu.busy_ratio"), ("driver", "cpu.busy_ratio"), ("sut", "process.cpu_ratio")} <= channels
    assert record.facts["sut"].boot_id == record.facts["driver"].boot_id != ""


async def test_intent_is_stored_before_the_host_is_touched(lab: Lab) -> None:
    watched = Watched(lab)

    def look(event: e.AnyEvent) -> None:
        if isinstance(event, e.StepIntended) and event.index == 1:
            assert (lab.etc / "app.conf").read_text() == "as it was\n"
            assert not (lab.directory(lab.sut) / "journal/0001.json").exists()
        if isinstance(event, e.StepApplied) and event.index == 1:
            assert (lab.etc / "app.conf").read_text() == "tuned\n"
            assert (lab.directory(lab.sut) / "journal/0001.json").exists()
            assert "as it was" in (lab.directory(lab.sut) / "journal/restore.sh").read_text()

    watched.on_event = look
    assert (await watched.run(lab.spec(file_step(lab)))).failed is None


FAILS = {"kind": "command", "run": "echo no such knob >&2; exit 7", "undo": ":"}


@pytest.mark.parametrize(
    "bad, place, message",
    [
        (FAILS, 0, "exit status 7: no such knob"),
        (FAILS, 1, "exit status 7: no such knob"),
        (FAILS, 2, "exit status 7: no such knob"),
        (REFUSED, 1, "did not take"),
        ({**XML_STEP, "path": "conf/absent.xml"}, 1, "conf/absent.xml does not exist on this host"),
    ],
    ids=["first", "second", "last", "value refused", "no such file"],
)
async def test_a_step_that_fails_takes_back_all_before_it(
    lab: Lab, bad: dict[str, Any], place: int, message: str
) -> None:
    steps = [file_step(lab), file_step(lab, "second.conf")]
    steps.insert(place, bad)
    watched = Watched(lab)
    record = await watched.run(lab.spec(*steps))
    assert record.failed is not None
    assert record.failed.phase == "tune"
    assert message in record.failed.message
    assert not record.failed.cancelled
    assert_left_as_it_was(lab, record)
    assert "server" not in record.jobs
    assert lab.starts == []


async def test_a_refused_value_fails_the_run_also_when_the_worker_died_right_then(lab: Lab) -> None:
    first = Watched(lab)
    spec = lab.spec(file_step(lab), REFUSED)
    await first.run(spec)
    cut = next(
        i for i, event in enumerate(stored(first.events)) if isinstance(event, e.StepApplied) and event.index == 2
    )
    events = await die_after(lab, spec, cut)
    second = Watched(lab, fence=2, events=list(events))
    record = await second.run(spec, Record.fold(events))
    assert record.failed is not None
    assert "did not take" in record.failed.message
    assert_left_as_it_was(lab, record)


@pytest.mark.parametrize(
    "server, phase, message",
    [
        ({"ready": {"path": "/absent", "timeout_s": 3}}, "start", "answered 404 instead of 200"),
        ({"ready": {"body_contains": "bye", "timeout_s": 3}}, "start", "without 'bye' in the body"),
        ({"ready": {"log_pattern": "NEVER", "timeout_s": 0.1}}, "start", "no line like 'NEVER'"),
        ({"argv": ["sh", "-c", "echo broken >&2; exit 3"]}, "start", "ended while starting (exit status 3)"),
        (
            {"argv": ["sh", "-c", "echo \"Unrecognized VM option 'MaxPermSize=512m'\" >&2; exit 1"]},
            "start",
            "(exit status 1). The JVM did not start: this Java does not take the option MaxPermSize=512m.",
        ),
        ({"argv": ["no-such-server"]}, "facts", "sut cannot run command"),
    ],
    ids=["status", "body", "log", "ended", "rejected", "missing"],
)
async def test_a_server_that_is_not_ready_fails_the_run(
    lab: Lab, server: dict[str, Any], phase: str, message: str
) -> None:
    watched = Watched(lab)

    def wait_for_it(event: e.AnyEvent) -> None:
        """The time within which it must be ready is short here, and how fast it starts is not what this is about."""
        if isinstance(event, e.JobStarted) and event.name == "server" and "argv" not in server:
            end_s = time.monotonic() + 120
            while port_is_free(lab.port) and time.monotonic() < end_s:
                time.sleep(0.02)

    watched.on_event = wait_for_it
    record = await watched.run(lab.spec(file_step(lab), **server))
    assert record.failed is not None
    assert (record.failed.phase, message in record.failed.message) == (phase, True), record.failed
    assert_left_as_it_was(lab, record)
    assert lab.starts == []


READY = "test -e index.html && echo port {port} is up"


@pytest.mark.parametrize(
    ("ready", "wrong"),
    [
        ({"probe": "tcp"}, ""),
        ({"probe": "none", "log_pattern": "Serving HTTP"}, ""),
        ({"probe": "none", "command": ["sh", "-c", READY], "command_output": "port [0-9]+ is up"}, ""),
        ({"probe": "none", "command": ["sh", "-c", "exit 3"], "command_status": 3}, ""),
        (
            {"probe": "tcp", "command": ["sh", "-c", "echo not yet; exit 2"], "timeout_s": 0.5},
            "sh ended with status 2, not 0: not yet",
        ),
        (
            {"probe": "none", "command": ["echo", "starting"], "command_output": "^up$", "timeout_s": 0.5},
            "echo printed nothing like '^up$': starting",
        ),
    ],
    ids=["port", "log", "output", "status", "wrong status", "wrong output"],
)
async def test_a_server_that_speaks_no_http_says_in_other_ways_that_it_is_ready(
    lab: Lab, ready: dict[str, Any], wrong: str
) -> None:
    record = await Watched(lab).run(lab.spec(ready={"body_contains": "", "timeout_s": 600} | ready))
    if wrong:
        assert record.failed is not None
        assert wrong in record.failed.message
        assert record.failed.hint.endswith("See the server's log: server.log.")
    else:
        assert record.failed is None, record.failed
    assert_left_as_it_was(lab, record)


async def test_a_port_that_nobody_listens_on_is_not_ready(lab: Lab) -> None:
    spec = lab.spec(argv=["sleep", "600"], ready={"probe": "tcp", "body_contains": "", "timeout_s": 0.5})
    record = await Watched(lab).run(spec)
    assert record.failed is not None
    assert "its port takes no connection" in record.failed.message


CHATTY = "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; mkdir -p logs; echo deep >logs/a.log; {}"


@pytest.mark.parametrize("fails", [True, False])
async def test_the_log_of_a_server_and_the_files_that_are_asked_for_are_kept_whole(lab: Lab, fails: bool) -> None:
    watched = Watched(lab)
    serve = f"exec {sys.executable} -u -m http.server --bind 127.0.0.1 {lab.port}"
    script = CHATTY.format("ln -s /etc/hostname logs/b.log; " + ("exit 7" if fails else serve))
    record = await watched.run(lab.spec(argv=["sh", "-c", script], keep_files=["logs/*.log", "none/*"]))
    assert (record.failed is not None) == fails
    assert watched.kept["server.log"].startswith(b"line 0\nline 1\n")
    assert b"line 4999\n" in watched.kept["server.log"]
    assert watched.kept["server-logs-a.log"] == b"deep\n"
    assert "server-logs-b.log" not in watched.kept, "a link that leads out of the instance is none of its files"
    assert "server.log: all of its" in watched.log
    if record.failed:
        assert "Its whole log is kept: server.log." in record.failed.hint
        assert "line 4999" in watched.log


async def test_a_foreign_server_on_the_port_is_never_measured(lab: Lab) -> None:
    foreign = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(lab.port), cwd=lab.folder,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await eventually(lambda: not port_is_free(lab.port))
        record = await Watched(lab).run(lab.spec())
    finally:
        foreign.kill()
        await foreign.wait()
    assert record.failed is not None
    assert record.failed.message == f"Another server listens on port {lab.port} of sut."
    assert_left_as_it_was(lab, record)


async def test_a_missing_load_tool_is_told_before_anything_is_touched(lab: Lab) -> None:
    (lab.folder / "wrk").unlink()
    watched = Watched(lab)
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.failed is not None
    assert record.failed.phase == "facts"
    assert "driver cannot run wrk" in record.failed.message
    assert record.intended == {}
    assert_left_as_it_was(lab, record)


async def test_a_login_lost_on_the_way_costs_no_run(lab: Lab) -> None:
    watched = Watched(lab)
    reach, lost = watched.connect, ["sut", "driver", "driver"]

    async def lossy(address: HostAddress) -> Session:
        if address.name in lost:
            lost.remove(address.name)
            raise ConnectError(f"{address.name} cannot be reached: no answer within 15 s.")
        return await reach(address)

    watched.connect = lossy  # type: ignore[method-assign]
    record = await watched.run(lab.spec())
    assert not lost
    assert record.failed is None
    assert_left_as_it_was(lab, record)


async def test_a_host_that_cannot_be_reached_is_told_before_anything_is_changed(lab: Lab) -> None:
    watched = Watched(lab)
    spec = lab.spec()
    spec = spec.model_copy(update={"drivers": (spec.drivers[0].model_copy(update={"port": free_port()}),)})

    async def unreachable(address: HostAddress) -> Session:
        if address.name == "driver":
            raise ConnectError("driver cannot be reached: the connection was refused.", hint="Is sshd running?")
        return await connect(lab.sut.login("sut"), lab.sut.private_key)

    watched.connect = unreachable  # type: ignore[method-assign]
    record = await watched.run(spec)
    assert record.failed == e.Failed(
        "connect", "driver cannot be reached: the connection was refused.", "Is sshd running?", cause="host"
    )
    assert record.restored == e.Restored({})


@pytest.mark.parametrize("phase", ["connect", "facts", "snapshot", "tune", "start", "warm_up", "measure", "collect"])
async def test_a_cancelled_run_ends_and_restores_in_every_phase(lab: Lab, phase: e.PhaseName) -> None:
    watched = Watched(lab)

    def cancel(event: e.AnyEvent) -> None:
        reached = event.index == (0 if phase == "warm_up" else 1) if isinstance(event, e.LoadStarted) else False
        loading = phase in ("warm_up", "measure")
        if reached if loading else isinstance(event, e.PhaseStarted) and event.phase == phase:
            watched.cancelled = True

    watched.on_event = cancel
    long = 60 if phase in ("warm_up", "measure") else 1
    phases = (("warm_up", long if phase == "warm_up" else 1), ("measure", long))
    record = await watched.run(lab.spec(file_step(lab), phases=phases))
    assert_left_as_it_was(lab, record)
    if phase == "collect":  # all the load was there: the run is whole
        assert record.failed is None
        return
    assert record.failed is not None
    assert record.failed.cancelled
    assert record.failed.message == "The run was cancelled."
    assert all(not report.measured for report in record.reports.values())


async def test_a_cut_while_measuring_does_no_harm(lab: Lab) -> None:
    watched = Watched(lab)

    def cut(event: e.AnyEvent) -> None:
        if isinstance(event, e.Samples) and event.role == "driver" and len(watched.of(e.LoadStarted)) == 1:
            for host in (lab.sut, lab.driver):
                cut_connections(host.pid)
            watched.on_event = lambda event: None

    watched.on_event = cut
    record = await watched.run(lab.spec(file_step(lab), phases=(("measure", 4),)))
    assert record.failed is None
    assert record.reports[0].exit_status == 0
    assert "Lost driver" in watched.log
    assert len(lab.starts) == 1
    assert_left_as_it_was(lab, record)


async def test_a_cancelled_run_does_not_wait_for_a_host_that_is_away(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.running.control.CANCELLED_PATIENCE_S", 0.0)
    watched = Watched(lab, patience_s=3600.0)
    reach = watched.connect

    async def away(address: HostAddress) -> Session:
        if watched.of(e.LoadStarted) and address.name == "driver":
            watched.cancelled = True
            raise ConnectError("driver cannot be reached: no answer.")
        return await reach(address)

    def cut(event: e.AnyEvent) -> None:
        if isinstance(event, e.Samples) and event.role == "driver":
            cut_connections(lab.driver.pid)

    watched.connect, watched.on_event = away, cut  # type: ignore[method-assign]
    record = await watched.run(lab.spec(file_step(lab), phases=(("measure", 60),)))
    assert record.failed is not None
    assert record.failed.cancelled
    assert record.restored is not None
    assert record.restored.away == ("driver",)
    assert list(record.restored.differences) == ["driver"]
    assert any("load-0 still runs" in line for line in record.restored.differences["driver"])
    assert (lab.etc / "app.conf").read_text() == "as it was\n"
    assert port_is_free(lab.port)
    for pid in lab.starts:
        os.kill(int(pid), signal.SIGKILL)


async def test_a_server_that_dies_under_load_fails_the_run(lab: Lab) -> None:
    watched = Watched(lab)

    def kill(event: e.AnyEvent) -> None:
        if isinstance(event, e.Samples) and event.role == "driver":
            pid = Record.fold(watched.events).started_jobs["server"].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            watched.on_event = lambda event: None

    watched.on_event = kill
    record = await watched.run(lab.spec(file_step(lab), phases=(("measure", 4),)))
    assert record.failed is not None
    assert record.failed.message == (
        "The server ended during the load with exit status 137: "
        "it was killed, by somebody or by the kernel when memory ran out."
    )
    assert_left_as_it_was(lab, record)


async def test_a_load_tool_that_is_killed_fails_the_run(lab: Lab) -> None:
    watched = Watched(lab)

    def kill(event: e.AnyEvent) -> None:
        if isinstance(event, e.Samples) and event.role == "driver":
            (pid,) = lab.starts
            os.kill(int(pid), signal.SIGKILL)
            watched.on_event = lambda event: None

    watched.on_event = kill
    record = await watched.run(lab.spec(phases=(("measure", 30),)))
    assert record.failed is not None
    assert record.failed.phase == "measure"
    assert record.reports[0].exit_status == 137
    assert not record.reports[0].report["complete"]
    assert_left_as_it_was(lab, record)


async def test_a_warm_up_without_a_usable_report_does_no_harm(lab: Lab) -> None:
    tool = lab.folder / "wrk"
    no_report_at_first = f'[ "$(wc -l <"{lab.witness}")" != 1 ] || {{ echo ???; exit 0; }}\nexec wrk'
    text = tool.read_text().replace("exec wrk", no_report_at_first)
    tool.write_text(text.replace('[ "$1" = -v ] ||', '[ "$1" = -v ] && exec wrk -v;'))
    record = await Watched(lab).run(lab.spec(phases=(("warm_up", 1), ("measure", 1))))
    assert record.failed is None
    assert (record.reports[0].output, record.reports[0].report["usable"]) == ("???\n", False)
    assert record.reports[1].report["requests"] > 0


async def test_a_measured_phase_without_a_report_fails_and_keeps_what_was_printed(lab: Lab) -> None:
    (lab.folder / "wrk").write_text('#!/bin/sh\n[ "$1" = -v ] && exec wrk -v\nprintf "???\\0\\n"\n')
    record = await Watched(lab).run(lab.spec())
    assert record.failed is not None
    assert record.failed.message.startswith("wrk did not run: its output is no report: ")
    assert record.reports[0].output == "???\0\n"
    assert_left_as_it_was(lab, record)


async def test_a_foreign_change_is_reported_and_left_alone(lab: Lab) -> None:
    watched = Watched(lab)

    def edit(event: e.AnyEvent) -> None:
        if isinstance(event, e.LoadStarted):
            (lab.etc / "app.conf").write_text("somebody's own\n")

    watched.on_event = edit
    record = await watched.run(lab.spec(file_step(lab), file_step(lab, "second.conf")))
    assert record.failed is None
    assert record.restored is not None
    ((difference,),) = record.restored.differences.values()
    assert "someone else changed observed during the run, so this step was left as it is" in difference
    assert (lab.etc / "app.conf").read_text() == "somebody's own\n"
    assert not (lab.etc / "second.conf").exists()
    assert (lab.directory(lab.sut) / "journal/restore.sh").exists()
