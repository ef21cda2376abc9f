"""The watch over a host during load, on a real connection: slow readers, garbage, cuts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.base.command import script
from agents.base.errors import FenceError
from agents.events import AnyEvent, Logged, Samples
from agents.monitors.base import Channel, Monitor, Reading
from agents.monitors.cpu import CpuMonitor
from agents.monitors.frequency import FrequencyMonitor
from agents.monitors.stream import Frame, Sampler
from agents.remote.link import Link
from agents.remote.ssh import SshSession, connect
from agents.running.monitoring import LONGEST_PAUSE_S, Monitoring, restart_pause_s
from tests.sshd import cut_connections, eventually, running_sshd

TICK_BYTES = 1_000_000


class Probe(Monitor):
    """A monitor of one shell snippet; its sample is the length of what was read, or a failure."""

    kind = "probe"
    cost = "nothing"

    def __init__(self, snippet: str, *, kind: str = "probe", fails: bool = False) -> None:
        self.kind = kind
        self._snippet = snippet
        self._fails = fails

    def snippet(self, pids: Sequence[int]) -> str:
        return self._snippet

    def samples(self, before: Reading, now: Reading) -> dict[Channel, float]:
        if self._fails:
            raise ValueError(now.text)
        return {Channel(f"{self.kind}.read_bytes", "bytes"): float(len(now.text))}


class Kept:
    """The events, in their order."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []

    async def __call__(self, event: AnyEvent) -> None:
        self.events.append(event)

    def samples(self) -> list[Samples]:
        return [event for event in self.events if isinstance(event, Samples)]

    def words(self) -> list[str]:
        return [line for event in self.events if isinstance(event, Logged) for line in event.lines]


async def test_while_the_database_is_slow_the_host_waits_and_nothing_piles_up(
    session: SshSession, tmp_path: Path
) -> None:
    ticks = tmp_path / "ticks"
    monitor = Probe(f"{{ echo >>'{ticks}'; head -c {TICK_BYTES} /dev/zero | tr '\\0' x; }}")
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(event: AnyEvent) -> None:
        asked.set()
        await answer.wait()

    async with Monitoring(session, "sut", [monitor], slow, pids=(), interval_s=0.1):
        await asked.wait()
        (await session.run(script("sleep 2"))).check("waiting")  # time for twenty readings
        assert ticks.stat().st_size <= 8
        answer.set()
        await eventually(lambda: ticks.stat().st_size > 8)


async def test_garbage_costs_only_the_monitor_that_printed_it(session: SshSession) -> None:
    kept = Kept()
    good = Probe("echo 12345", kind="good")
    garbage = Probe("head -c 3000 /dev/urandom", kind="garbage", fails=True)
    async with Monitoring(session, "sut", [garbage, good], kept, pids=(), interval_s=0.1):
        await eventually(lambda: len(kept.samples()) >= 3)
    assert all("good.read_bytes" in sample.values for sample in kept.samples())
    assert [line.partition(" gave ")[0] for line in kept.words()] == ["Monitors: garbage"]


class Cpus(Monitor):
    """A monitor that sees two CPUs, busy, interrupted and clocked in their own ways."""

    kind = "cpus"
    cost = "nothing"

    def snippet(self, pids: Sequence[int]) -> str:
        return "echo"

    of_the_set = (*CpuMonitor.of_the_set, *FrequencyMonitor.of_the_set)

    def samples(self, before: Reading, now: Reading) -> dict[Channel, float]:
        found = {"cpu.0.busy_ratio": 0.2, "cpu.1.busy_ratio": 0.8, "cpu.busy_ratio": 0.5, "frequency.mean_mhz": 2500.0}
        found |= {"cpu.1.interrupt_ratio": 0.1, "frequency.0.mhz": 2000.0, "frequency.1.mhz": 3000.0}
        return {Channel(name, name.rpartition("_")[2].rpartition(".")[2]): value for name, value in found.items()}


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        ("1", {"busy_ratio": 0.8, "interrupt_ratio": 0.1, "mean_mhz": 3000.0}),
        ("0,1", {"busy_ratio": 0.5, "interrupt_ratio": 0.1, "mean_mhz": 2500.0}),
        ("", {"busy_ratio": 0.5, "mean_mhz": 2500.0}),
        ("7", {}),
    ],
)
async def test_the_cpus_of_the_process_have_channels_of_their_own(
    session: SshSession, cpus: str, expected: dict[str, float]
) -> None:
    kept = Kept()
    async with Monitoring(session, "sut", [Cpus()], kept, pids=(), interval_s=0.1, cpus=cpus):
        await eventually(lambda: len(kept.samples()) >= 1)
    values = kept.samples()[0].values
    of_the_set = {name.removeprefix("cpu_set."): v for name, (_, v) in values.items() if name.startswith("cpu_set.")}
    assert of_the_set == pytest.approx(expected)


def test_a_monitor_that_failed_is_not_asked_again() -> None:
    sampler = Sampler([Probe("", kind="bad", fails=True), Probe("", kind="good")])
    frames = [Frame(at_s, {kind: Reading(at_s, "x") for kind in ("bad", "good")}) for at_s in (1.0, 2.0, 3.0, 4.0)]
    batches = sampler.feed(frames)
    assert [[channel.name for channel in batch.values] for batch in batches] == [["good.read_bytes"]] * 3
    assert sampler.given_up == ["bad"]


async def test_samples_flow_again_after_a_cut_and_the_torn_reading_is_gone(tmp_path: Path) -> None:
    kept = Kept()
    with running_sshd(tmp_path) as host:
        link = Link("sut", lambda: connect(host.login(), host.private_key))
        async with Monitoring(link, "sut", [Probe("printf '%0200000d' 7")], kept, pids=(), interval_s=0.1):
            await eventually(lambda: len(kept.samples()) >= 2)
            cut_connections(host.pid)
            before = len(kept.samples())
            await eventually(lambda: len(kept.samples()) >= before + 2)
        await link.close()
    assert {sample.values["probe.read_bytes"] for sample in kept.samples()} == {("bytes", 200_000.0)}


async def test_a_loop_that_ends_at_once_is_started_again_only_after_a_pause(
    session: SshSession, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    async with Monitoring(session, "sut", [Probe(f"echo >>'{starts}'; exit 3;")], Kept(), pids=(), interval_s=0.1):
        await eventually(lambda: starts.exists() and starts.stat().st_size == 2)


def test_the_pause_between_starts_grows_to_half_a_minute() -> None:
    assert [restart_pause_s(n) for n in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert restart_pause_s(10**6) == LONGEST_PAUSE_S


async def test_a_newer_holder_comes_out_of_the_watch_because_it_must_stop_the_run(session: SshSession) -> None:
    refused = asyncio.Event()

    async def refuse(event: AnyEvent) -> None:
        refused.set()
        raise FenceError("a newer holder")

    async def watch() -> None:
        async with Monitoring(session, "sut", [Probe("echo 1")], refuse, pids=(), interval_s=0.1):
            await refused.wait()

    with pytest.raises(FenceError):
        await watch()


async def test_a_mistake_in_reading_is_told_and_the_run_goes_on(session: SshSession) -> None:
    kept = Kept()

    async def stumble(event: AnyEvent) -> None:
        if isinstance(event, Samples):
            raise KeyError("a mistake")
        await kept(event)

    async with Monitoring(session, "sut", [Probe("echo 1")], stumble, pids=(), interval_s=0.1):
        await eventually(lambda: bool(kept.words()))
    assert kept.words() == ["Monitors: BenchHub made a mistake in reading them; its log has the details."]
