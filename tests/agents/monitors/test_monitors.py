from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.base.errors import ParseError, PlanError
from agents.monitors import MONITORS
from agents.monitors.base import Channel, Monitor, Reading
from agents.monitors.stream import MAX_FRAME_BYTES, Frame, FrameReader, SampleBatch, Sampler, new_mark, stream_command
from tests.agents.recorded import CASES, damaged
from tests.properties import HealthCheck, given, settings, st

ALL = list(MONITORS.values())
MARK = "==tick-test"


@dataclass(frozen=True)
class Pair:
    """Two readings of one monitor and the samples between them."""

    kind: str
    before: Reading
    now: Reading
    expected: dict[str, float]


def pairs(kind: str) -> list[Pair]:
    found = []
    for path in sorted((CASES / f"monitor-{kind}").glob("*.expected.json")):
        about = json.loads(path.read_text())
        name = path.name.removesuffix(".expected.json")
        before, now = (Path(path.parent, f"{name}.{which}.txt").read_text() for which in ("before", "now"))
        readings = Reading(about["before_at_s"], before), Reading(about["now_at_s"], now)
        found.append(Pair(kind, *readings, about["expected"]))
    return found


EVERY_PAIR = [pair for kind in MONITORS for pair in pairs(kind)]


def named(samples: object) -> dict[str, float]:
    assert isinstance(samples, dict)
    return {channel.name: value for channel, value in samples.items()}


def samples(kind: str, before: str, now: str, elapsed_s: float = 1.0) -> dict[str, float]:
    return named(MONITORS[kind].samples(Reading(100.0, before), Reading(100.0 + elapsed_s, now)))


@pytest.mark.parametrize("kind", MONITORS)
def test_every_monitor_has_cases_and_states_its_cost(kind: str) -> None:
    assert pairs(kind)
    assert MONITORS[kind].kind == kind
    assert MONITORS[kind].cost


@pytest.mark.parametrize("pair", EVERY_PAIR, ids=lambda pair: pair.kind)
def test_two_readings_give_the_expected_samples(pair: Pair) -> None:
    found = named(MONITORS[pair.kind].samples(pair.before, pair.now))
    assert {name: found.get(name) for name in pair.expected} == pytest.approx(pair.expected)


@pytest.mark.parametrize("pair", EVERY_PAIR, ids=lambda pair: pair.kind)
def test_every_channel_ends_with_its_unit(pair: Pair) -> None:
    for channel in MONITORS[pair.kind].samples(pair.before, pair.now):
        assert channel.name.endswith((f"_{channel.unit}", f".{channel.unit}", "_packets_per_s"))


def stat(**cpus: str) -> str:
    return "cpu  1 1 1 1 1 1 1 1 0 0\n" + "".join(f"{cpu} {ticks}\n" for cpu, ticks in cpus.items()) + "intr 5\n"


def test_shares_of_cpu_time_leave_guests_uncounted_twice() -> None:
    found = samples("cpu", stat(cpu0="0 0 0 0 0 0 0 0 0 0"), stat(cpu0="30 10 5 40 5 2 3 5 30 10"))
    assert found["cpu.0.busy_ratio"] == pytest.approx(0.50)
    assert found["cpu.0.user_ratio"] == pytest.approx(0.40)
    assert found["cpu.0.system_ratio"] == pytest.approx(0.10)
    assert found["cpu.0.iowait_ratio"] == pytest.approx(0.05)
    assert found["cpu.0.steal_ratio"] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"cpu1": "500 0 500 9000 10 0 0 0"}, {"cpu1": "0 0 0 50 0 0 0 0"}),
        ({"cpu1": "500 0 500 9000 10 0 0 0"}, {}),
        ({}, {"cpu1": "500 0 500 9000 10 0 0 0"}),
        ({"cpu1": "500 0 500 9000 10 0 0 0"}, {"cpu1": "501 0 500 99000 10 0 0 0"}),
        ({"cpu1": "500 0 500 9000 10 0 0 0"}, {"cpu1": "510 0 500 8000 10 0 0 0"}),
        ({"cpu1": "500 0 500 9000 10 0 0 0"}, {"cpu1": "500 0 500 9000 10 0 0 0"}),
    ],
    ids=["reset", "gone", "came", "idle jumped ahead", "idle jumped back", "stood still"],
)
def test_a_cpu_that_went_off_or_on_has_no_sample_and_does_not_spoil_the_total(
    before: dict[str, str], now: dict[str, str]
) -> None:
    found = samples("cpu", stat(cpu0="0 0 0 0 0 0 0 0", **before), stat(cpu0="25 0 0 75 0 0 0 0", **now))
    assert not any(name.startswith("cpu.1.") for name in found)
    assert found["cpu.busy_ratio"] == pytest.approx(0.25)


def test_a_little_idle_time_taken_back_is_no_reset() -> None:
    found = samples("cpu", stat(cpu0="0 0 0 100 7 0 0 0"), stat(cpu0="90 0 0 110 5 0 0 0"))
    assert found["cpu.busy_ratio"] == pytest.approx(0.9)


def net(**nics: tuple[int, int, int, int]) -> str:
    lines = [f"{n}: {a} {b} 0 0 0 0 0 0 {c} {d} 0 0 0 0 0 0" for n, (a, b, c, d) in nics.items()]
    return "Inter-|   Receive  | Transmit\n face |bytes packets\n" + "\n".join(lines) + "\n"


def test_an_interface_made_anew_has_no_sample() -> None:
    before, now = (
        net(eth0=(100, 1, 0, 0), veth1=(9, 9, 9, 9)),
        net(eth0=(300, 3, 0, 0), veth1=(0, 0, 0, 1), idle=(0,) * 4),
    )
    assert samples("network", before, now, 2.0) == {
        "network.eth0.rx_bytes_per_s": 100.0,
        "network.eth0.rx_packets_per_s": 1.0,
        "network.eth0.tx_bytes_per_s": 0.0,
        "network.eth0.tx_packets_per_s": 0.0,
    }


def task(number: int, name: str, ticks: int, began: int = 50) -> str:
    return f"{number} ({name}) S 1 1 1 0 -1 4194560 1 2 3 4 {ticks} 0 0 0 20 0 1 0 {began} 9 9 " + "0 " * 27 + "0\n"


def test_threads_of_one_name_are_added_up_and_newcomers_count_from_their_start() -> None:
    before = task(7, "java", 100) + task(7, "java", 5) + task(8, "http-nio-8080-e", 40) + task(9, "gone", 55)
    now = (
        task(7, "java", 260)
        + task(7, "java", 5)
        + task(8, "http-nio-8080-e", 130)
        + task(10, "http-nio-8080-e", 60, began=9999)
    )
    assert samples("threads", before, now) == pytest.approx(
        {
            "process.cpu_ratio": 1.6,
            "threads.http-nio-8080-e.cpu_ratio": 1.5,
            "threads.http-nio-8080-e.count": 2.0,
            "threads.java.cpu_ratio": 0.0,
            "threads.java.count": 1.0,
        }
    )


def forked(number: int, own: int, waited: int = 0, began: int = 50) -> str:
    """A process with its one thread."""
    line = task(number, "nginx", own, began).replace(f" {own} 0 0 0 20 ", f" {own} 0 {waited} 0 20 ")
    return line + line


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (forked(1, 1) + forked(2, 150) + forked(3, 250), 1.0),
        (forked(1, 1) + forked(2, 150) + forked(3, 200) + forked(4, 20, began=9990), 0.7),
        (forked(1, 1, waited=230) + forked(2, 150), 0.8),
        (forked(1, 1, waited=30) + forked(2, 100) + forked(3, 200), 0.3),
        (forked(1, 1) + forked(2, 150), 0.5),
        (forked(1, 1) + forked(2, 100) + forked(3, 200) + forked(5, 90_000, began=60), 0.0),
    ],
    ids=["two worked", "a new one", "one ended", "many lived for less than a reading", "one left", "seen only now"],
)
def test_the_processes_of_a_server_that_forks_are_added_up(now: str, expected: float) -> None:
    before = forked(1, 1) + forked(2, 100) + forked(3, 200)
    found = samples("threads", before, now)
    assert found["process.cpu_ratio"] == pytest.approx(expected)
    assert found["threads.nginx.count"] == now.count("nginx") / 2


def test_threads_without_their_process_are_no_process() -> None:
    before = task(7, "nginx", 5) + task(8, "nginx", 5)
    found = samples("threads", before, task(7, "nginx", 15) + task(8, "nginx", 5))
    assert set(found) == {"threads.nginx.cpu_ratio", "threads.nginx.count"}


FORKING = """
import os, sys, time
def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until: pass
for worker in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            while True: work(0.05); time.sleep(0.05)
        os.wait()
print(flush=True)
while True:
    if (child := os.fork()) == 0:
        work(0.02); os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.02)
"""


def test_what_a_server_does_in_the_processes_that_it_forks_is_its_own() -> None:
    mark = new_mark()
    with subprocess.Popen([sys.executable, "-c", FORKING], stdout=subprocess.PIPE, start_new_session=True) as server:
        assert server.stdout
        server.stdout.readline()
        command = stream_command(ALL, mark, interval_s=0.5, pids=(server.pid,))
        with subprocess.Popen(command.argv, stdout=subprocess.PIPE) as loop:
            assert loop.stdout
            reader, sampler = FrameReader(mark), Sampler(ALL)
            batches: list[SampleBatch] = []
            while len(batches) < 4 and (chunk := os.read(loop.stdout.fileno(), 1 << 16)):
                batches += sampler.feed(reader.feed(chunk))
            loop.kill()
        os.killpg(server.pid, signal.SIGKILL)
    used = [named(batch.values)["process.cpu_ratio"] for batch in batches]
    assert max(used) > 0.05, "the process that was started waits; those that it forked work"


def test_a_reused_process_number_gives_no_absurd_sample() -> None:
    before = task(7, "java", 90_000) + task(7, "java", 90_000) + task(8, "w", 10)
    now = task(7, "python", 3, began=777) + task(7, "python", 3, began=777) + task(8, "w", 900_000)
    found = samples("threads", before, now)
    assert "process.cpu_ratio" not in found
    assert found.get("threads.python.cpu_ratio") == pytest.approx(0.03)
    assert "threads.w.cpu_ratio" not in found


@pytest.mark.parametrize("name", ["a b", "a) S 1 (b", "(x)", "a\nb", "", ")"])
def test_a_thread_may_have_any_name(name: str) -> None:
    text = task(7, "java", 1) + task(7, "java", 1) + task(8, name, 0)
    later = task(7, "java", 1) + task(7, "java", 1) + task(8, name, 50)
    found = samples("threads", text, later)
    assert sorted(v for n, v in found.items() if n.startswith("threads.") and n.endswith("ratio")) == [0.0, 0.5]
    assert all(n.isprintable() for n in found)


def test_only_the_busiest_names_are_shown() -> None:
    before = task(1, "p", 0) + "".join(task(n, f"t{n}", 0) for n in range(2, 60))
    now = task(1, "p", 0) + "".join(task(n, f"t{n}", n) for n in range(2, 60))
    shown = [name for name in samples("threads", before, now) if name.endswith("ratio") and name.startswith("threads.")]
    assert shown == [f"threads.t{n}.cpu_ratio" for n in range(59, 29, -1)]


@pytest.mark.parametrize("kind", MONITORS)
@pytest.mark.parametrize("elapsed_s", [0.0, -5.0])
def test_a_clock_that_stands_or_goes_back_gives_no_rate(kind: str, elapsed_s: float) -> None:
    pair = pairs(kind)[0]
    found = MONITORS[kind].samples(pair.before, Reading(pair.before.at_s + elapsed_s, pair.now.text))
    assert not [channel for channel in found if channel.unit in ("bytes_per_s", "packets_per_s")]
    assert not [channel for channel in found if channel.name.startswith(("threads", "process"))]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(damaged([pair.now.text for pair in EVERY_PAIR]), damaged([pair.now.text for pair in EVERY_PAIR]))
def test_damaged_readings_give_no_negative_and_no_absurd_sample(before: str, now: str) -> None:
    for monitor in ALL:
        for one, two in ((before, now), (now, before)):
            for channel, value in monitor.samples(Reading(10.0, one), Reading(12.0, two)).items():
                assert value >= 0
                if channel.unit == "ratio" and channel.name.startswith("cpu"):
                    assert value <= 1


@pytest.mark.parametrize("kind", ["energy", "frequency", "swap", "sockets"])
@pytest.mark.parametrize("text", ["", "\n", "Tcp: A B\nTcp: 1\n", "pswpin 5\n", "/sys/devices/system/cpu/cpu0/x:7\n"])
def test_a_host_that_does_not_show_something_has_no_sample_of_it(kind: str, text: str) -> None:
    assert samples(kind, text, text) == {}


def test_a_counter_of_energy_that_begins_anew_goes_on_where_it_says_and_else_gives_nothing() -> None:
    zone = "/sys/class/powercap/intel-rapl:0"

    def shown(counted: int, *more: str) -> str:
        return "\n".join((f"{zone}/name:package-0", f"{zone}/energy_uj:{counted}", *more))

    most = f"{zone}/max_energy_range_uj:100000000"
    assert samples("energy", shown(90_000_000, most), shown(5_000_000, most))["energy.package-0.watts"] == 15.0
    assert samples("energy", shown(90_000_000), shown(5_000_000)) == {}
    assert samples("energy", f"{zone}/name:package-0\n", shown(5_000_000, most)) == {}


def test_a_range_of_ports_that_ends_before_it_begins_is_none() -> None:
    assert "tcp.local_ports_count" not in samples("sockets", "", "60999\t32768\n")


@pytest.mark.parametrize("before, now", [((), (1,)), ((1, 1), (1,)), ((5,), (1,))])
def test_a_postgresql_that_came_went_or_counts_anew_has_no_rates(before: tuple[int, ...], now: tuple[int, ...]) -> None:
    first, second = ("".join(f"benchhub {n} 0 0 0 0 0 8192 0 0 0\n" for n in side) for side in (before, now))
    assert samples("postgresql", first, second) == {}


@pytest.mark.parametrize("kind", ["nginx", "postgresql"])
def test_a_process_that_is_no_such_server_of_a_run_is_asked_nothing(kind: str) -> None:
    argv = ["sh", "-c", MONITORS[kind].snippet((os.getpid(), 1))]
    asked = subprocess.run(argv, capture_output=True, check=True)
    assert (asked.stdout, asked.stderr) == (b"", b"")


def test_the_clock_of_the_cpus_is_read_at_each_fifth_reading_only(tmp_path: Path) -> None:
    snippet = MONITORS["frequency"].snippet(()).replace("/sys/devices/system/cpu/", f"{tmp_path}/")
    (tmp_path / "cpu0" / "cpufreq").mkdir(parents=True)
    (tmp_path / "cpu0" / "cpufreq" / "scaling_cur_freq").write_text("2400000\n")
    loop = f"for tick in 1 2 3 4 5 6 7; do echo tick $tick; {snippet}; done"
    printed = subprocess.run(["sh", "-c", loop], capture_output=True, text=True, check=False).stdout.splitlines()
    shown = [printed[i - 1] for i, line in enumerate(printed) if line.endswith("scaling_cur_freq:2400000")]
    assert shown == ["tick 1", "tick 6"]


def framed(tick: int) -> bytes:
    text = f"{MARK} cpu+memory {tick}.00\n{tick}.10 5.00\ncpu0 {tick}\n{tick}.20 6.00\nMemTotal: {tick} kB\n\n"
    return f"{text}{MARK} gc {tick}.30\nline\n\n{MARK} end {tick}.50\n".encode()


STREAM = b"motd\n" + b"".join(framed(tick) for tick in (1, 2, 3))


def frame(tick: int) -> Frame:
    return Frame(
        tick + 0.5,
        {
            "cpu": Reading(tick + 0.1, f"cpu0 {tick}\n"),
            "memory": Reading(tick + 0.2, f"MemTotal: {tick} kB\n"),
            "gc": Reading(tick + 0.3, "line\n"),
        },
    )


@given(st.lists(st.integers(0, len(STREAM)), max_size=12).map(sorted))
def test_frames_come_out_whole_wherever_the_chunks_break(cuts: list[int]) -> None:
    reader = FrameReader(MARK)
    edges = [0, *cuts, len(STREAM)]
    frames = [f for a, b in itertools.pairwise(edges) for f in reader.feed(STREAM[a:b])]
    assert frames == [frame(1), frame(2), frame(3)]


def test_a_torn_last_frame_is_not_given() -> None:
    end = STREAM.rindex(b"\n")
    reader = FrameReader(MARK)
    assert reader.feed(STREAM[:end]) == [frame(1), frame(2)]
    assert reader.feed(STREAM[end:]) == [frame(3)]


def test_a_shared_cat_with_a_part_too_many_is_passed_over() -> None:
    forged = f"{MARK} cpu+memory 1.00\n1.10 5.00\n1.10 5.00\ncpu0\n1.20 6.00\nx\n\n{MARK} end 1.50\n".encode()
    assert FrameReader(MARK).feed(forged) == [Frame(1.5, {})]


def test_a_frame_without_end_is_an_error_and_reading_goes_on_after_it() -> None:
    reader = FrameReader(MARK)
    with pytest.raises(ParseError, match="without the end"):
        reader.feed(f"{MARK} cpu 1.00\n".encode() + b"x" * MAX_FRAME_BYTES)
    assert reader.feed(b"\n" + framed(4)) == [frame(4)]


class Gauge(Monitor):
    """A monitor that shows the second of its readings."""

    kind = "gauge"
    cost = "nothing"

    def snippet(self, pids: Sequence[int]) -> str:
        return "echo 5"

    def samples(self, before: Reading, now: Reading) -> dict[Channel, float]:
        return {Channel("gauge.count", "count"): float(now.text)}


def test_the_first_reading_gives_nothing_and_a_reboot_starts_anew() -> None:
    sampler = Sampler([Gauge()])
    frames = [Frame(at_s, {"gauge": Reading(at_s, str(at_s))}) for at_s in (10.0, 11.0, 12.0, 3.0, 4.0)]
    batches = sampler.feed(frames[:1]) + sampler.feed(frames[1:])
    assert [(batch.at_s, list(batch.values.values())) for batch in batches] == [(11, [11]), (12, [12]), (4, [4])]


@pytest.mark.parametrize("interval_s", [0.0, 0.05, 61, float("nan")])
def test_an_interval_that_would_disturb_the_host_is_refused(interval_s: float) -> None:
    with pytest.raises(PlanError):
        stream_command(ALL, MARK, interval_s=interval_s)


def test_all_monitors_share_one_cat_and_those_without_a_process_are_left_out() -> None:
    text = stream_command(ALL, MARK, pids=()).argv[2]
    assert text.count("cat ") == 1
    assert "task" not in text
    assert "threads" not in text


@pytest.mark.parametrize("sigpipe_ignored", [False, True])
def test_the_loop_runs_under_sh_and_stops_when_nobody_reads(sigpipe_ignored: bool) -> None:
    mark = new_mark()
    monitors = [*ALL, Gauge()]
    command = stream_command(monitors, mark, interval_s=0.1, pids=(os.getpid(),))
    reader, sampler = FrameReader(mark), Sampler(monitors)
    with subprocess.Popen(
        command.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, restore_signals=not sigpipe_ignored
    ) as loop:
        assert loop.stdout
        assert loop.stderr
        batches: list[SampleBatch] = []
        while len(batches) < 3 and (chunk := os.read(loop.stdout.fileno(), 100)):
            batches += sampler.feed(reader.feed(chunk))
        loop.stdout.close()
        assert loop.wait(timeout=300) in ((0,) if sigpipe_ignored else (-13, 141))
        assert b"Permission" not in loop.stderr.read()
    found = named(batches[-1].values)
    assert 0 <= found["cpu.busy_ratio"] <= 1
    assert found["memory.used_bytes"] > 0
    assert found["network.lo.rx_bytes_per_s"] >= 0
    assert found["swap.pages_count"] >= 0
    assert found["tcp.local_ports_count"] > 0
    assert found["gauge.count"] == 5
    assert found["process.cpu_ratio"] >= 0
    assert any(name.startswith("threads.") and name.endswith(".count") and n >= 1 for name, n in found.items())
