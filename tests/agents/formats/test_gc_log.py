"""The garbage collector's log: lines of every collector, and logs that real JVMs write."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.base.command import Command
from agents.base.process_start import ProcessStart
from agents.formats.gc_log import GC_LOG_OPTION, MAX_PAUSES, GcPause, parse_pauses, read_command
from agents.formats.jvm_log import course_of
from agents.servers.liberty.server import Liberty
from agents.servers.tomcat.server import Tomcat
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.tomcat_install import running, unpack_tomcat

AT = "2025-11-20T17:53:52.729+0000"
AT_UNIX_S = datetime(2025, 11, 20, 17, 53, 52, 729_000, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("line", "pause_ms", "full"),
    [
        ("[info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 6M->1M(64M) 1.169ms", 1.169, False),
        ("[info][gc          ] GC(12) Pause Young (Allocation Failure) 16M->0M(61M) 2.510ms", 2.51, False),
        ("[info][gc             ] GC(4) Pause Full (System.gc()) 16M->8M(34M) 22.239ms", 22.239, True),
        ("[info][gc          ] GC(7) Pause Remark 5M->5M(256M) 1.200ms", 1.2, False),
        ("[info][gc          ] GC(0) Pause Init Mark (unload classes) 0.045ms", 0.045, False),
        ("[info][gc,phases   ] GC(0) Pause Mark Start 0.007ms", 0.007, False),
        ("[info][gc,phases   ] GC(0) Y: Pause Mark Start (Major) 0.012ms", 0.012, False),
        ("[info][gc,phases   ] GC(0) O: Pause Mark End 0.006ms", 0.006, False),
        ("[info][gc,start    ] GC(0) Pause Young (Normal) (G1 Evacuation Pause)", None, False),
        ("[info][gc          ] GC(3) Concurrent Mark Cycle 12.300ms", None, False),
        ("[info][gc,phases   ] GC(0)   Pre Evacuate Collection Set: 0.1ms", None, False),
        ("[info][gc,cpu      ] GC(0) User=0.00s Sys=0.00s Real=0.00s", None, False),
        ("[info][gc,init     ] Heap Region Size: 1M", None, False),
    ],
    ids=[
        "G1", "Serial or Parallel", "full", "G1 remark", "Shenandoah", "ZGC", "young ZGC", "old ZGC", "a beginning",
        "concurrent", "a part", "times", "no collection",
    ],
)  # fmt: skip
def test_a_line_is_a_pause_or_not(line: str, pause_ms: float | None, full: bool) -> None:
    expected = [] if pause_ms is None else [GcPause(AT_UNIX_S, pause_ms, full)]
    assert parse_pauses(f"[{AT}]{line}\n") == expected


def test_a_pause_at_a_time_that_no_calendar_has_is_passed_by() -> None:
    line = "][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 6M->1M(64M) 1.169ms\n"
    damaged = "".join(f"[{at}{line}" for at in (AT.replace("-11-", "-13-"), AT.replace("T17", "T27"), AT))
    assert parse_pauses(damaged) == [GcPause(AT_UNIX_S, 1.169, False)]


def java_home() -> str:
    needs.require_program("java")
    return "java"


def run(command: Command) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=300, check=False)


def option_for(java: str, log: Path) -> str:
    text = f'{GC_LOG_OPTION}\ngc_log_option "$1" "$2"'
    done = subprocess.run(["sh", "-c", text, "sh", java, str(log)], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_java_that_does_not_know_the_option_is_started_without_it(tmp_path: Path) -> None:
    old = tmp_path / "java"
    old.write_text('#!/bin/sh\necho "Unrecognized option: $1" >&2\nexit 1\n')
    old.chmod(0o755)
    assert option_for(str(old), tmp_path / "gc.log") == ""
    assert option_for(str(tmp_path / "none"), tmp_path / "gc.log") == ""


def test_a_real_jvm_logs_its_pauses_with_the_host_s_time(tmp_path: Path) -> None:
    java, log = java_home(), tmp_path / "gc.log"
    source = tmp_path / "Collect.java"
    source.write_text("class Collect { public static void main(String[] a) { System.gc(); System.gc(); } }")
    option = option_for(java, log)
    assert option.startswith("-Xlog:gc*,safepoint:file=")
    before = time.time()
    subprocess.run([java, "-XX:+UseSerialGC", "-Xmx64m", option, str(source)], check=True, capture_output=True)
    pauses = parse_pauses(run(read_command(str(log))).stdout.decode())
    full = [pause for pause in pauses if pause.full]
    assert len(full) == 2
    assert all(before - 1 <= pause.at_unix_s <= time.time() + 1 and pause.pause_ms > 0 for pause in full)


def test_the_option_can_be_switched_off_by_one_behind_it(tmp_path: Path) -> None:
    java, log = java_home(), tmp_path / "gc.log"
    done = subprocess.run([java, option_for(java, log), "-Xlog:disable", "-version"], capture_output=True)
    assert done.returncode == 0
    assert not log.exists() or parse_pauses(log.read_text()) == []


def test_old_files_of_the_log_come_first_and_there_is_an_end_to_them(tmp_path: Path) -> None:
    log = tmp_path / "gc.log"

    def lines(second: int, count: int) -> str:
        line = f"[2025-11-20T17:53:{second:02}.000+0000][info][gc] GC(1) Pause Young (Normal) 1M->1M(2M) 1.000ms\n"
        return line * count

    log.write_text(lines(30, 3) + "[2025-11-20T17:53:30.000+0000][info][gc] GC(2) Pause You")
    Path(f"{log}.1").write_text(lines(20, 2))
    Path(f"{log}.0").write_text(lines(10, MAX_PAUSES))
    seconds = [int(pause.at_unix_s) % 60 for pause in parse_pauses(run(read_command(str(log))).stdout.decode())]
    assert len(seconds) == MAX_PAUSES
    assert seconds[-5:] == [20, 20, 30, 30, 30]
    assert seconds == sorted(seconds)
    assert run(read_command(str(tmp_path / "none"))).returncode == 3


def test_a_real_tomcat_has_a_log_of_its_collector(tmp_path: Path) -> None:
    home = unpack_tomcat(tmp_path)
    server = Tomcat(home=str(home), port=free_port(), jvm_options=("-Xmx48m", "-Xms48m", "-XX:+UseSerialGC"))
    instance = str(tmp_path / "instance")
    assert run(server.create_instance(instance)).returncode == 0
    environment = server.environment(instance, ProcessStart())
    with running(server.start_command(instance, ProcessStart()), environment, until=b"Server startup in"):
        printed = run(read_command(server.gc_log_path(instance) or ""))
    assert printed.returncode == 0
    assert parse_pauses(printed.stdout.decode())
    assert {"heap_after_gc_bytes", "safepoints_per_s", "stopped_ratio"} <= course_of(printed.stdout.decode()).keys()


def test_liberty_gets_the_option_in_the_file_that_is_read_first(tmp_path: Path) -> None:
    home, instance = tmp_path / "wlp", tmp_path / "instance"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "server").write_text("#!/bin/sh\nexit 0\n")
    (home / "bin" / "server").chmod(0o755)
    java_home()
    server = Liberty(home=str(home))
    assert run(server.create_instance(str(instance))).returncode == 0
    assert run(server.start_command(str(instance), ProcessStart(jvm_options=("-Xmx1g",)))).returncode == 0
    drop_ins = instance / "usr" / "servers" / "defaultServer" / "configDropins"
    assert (drop_ins / "overrides" / "jvm.options").read_text() == "-Xmx1g\n"
    expected = (
        f"-Xlog:gc*,safepoint:file={server.gc_log_path(str(instance))}:utctime,level,tags:filecount=2,filesize=32m\n"
    )
    assert (drop_ins / "defaults" / "jvm.options").read_text() == expected
