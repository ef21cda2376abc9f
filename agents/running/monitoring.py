"""Watches one host during load: raw /proc text comes over the open connection, the samples are made here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from agents.base.clock import run_clock_s
from agents.base.cpuset import parse_cpus
from agents.base.errors import AgentError, FenceError
from agents.base.session import Session
from agents.events import AnyEvent, Logged, Role, Samples
from agents.monitors.base import Monitor
from agents.monitors.stream import FrameReader, Sampler, new_mark, stream_command

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0

logger = logging.getLogger(__name__)


def restart_pause_s(in_vain: int) -> float:
    """How long to wait before the stream is started again after `in_vain` starts that gave no sample."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(in_vain, 10))


class Monitoring:
    """An async context: samples flow while it is open. A cut restarts the stream; the gap stays a gap.

    Nothing piles up: the stream is read on only when `emit` has taken the last samples, and until then it is the host
    that waits. A trouble is told once until samples flow again.

    `cpus` are those that the watched process may use ("" = all): they get channels of their own,
    `cpu_set.*`, so that server and load tool on one machine are told apart.
    """

    def __init__(
        self,
        session: Session,
        role: Role,
        monitors: Sequence[Monitor],
        emit: Callable[[AnyEvent], Awaitable[None]],
        *,
        pids: Sequence[int],
        interval_s: float,
        cpus: str = "",
    ) -> None:
        self._session = session
        self._role = role
        self._monitors = tuple(monitors)
        self._emit = emit
        self._pids = tuple(pids)
        self._interval_s = interval_s
        self._cpus = parse_cpus(cpus)
        self._task: asyncio.Task[None] | None = None
        self._in_vain = 0
        self._told: set[str] = set()
        self._left_out: set[str] = set()

    async def __aenter__(self) -> Monitoring:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})  # unlike `await`, this leaves our own cancellation alone
            if not self._task.cancelled():
                self._task.result()

    async def _watch(self) -> None:
        while True:
            try:
                await self._read_stream()
            except FenceError:
                raise
            except AgentError as error:
                await self._say(error.message)
            except Exception:  # a chart with a gap is better than a run that fails for its monitors
                logger.exception("the monitors of %s", self._session.host)
                await self._say("BenchHub made a mistake in reading them; its log has the details.")
                return
            await asyncio.sleep(restart_pause_s(self._in_vain))
            self._in_vain += 1

    async def _say(self, text: str) -> None:
        if text in self._told:
            return
        self._told.add(text)
        await self._emit(Logged(self._session.host, (f"Monitors: {text}",), "warning"))

    async def _read_stream(self) -> None:
        mark = new_mark()
        reader, sampler = FrameReader(mark), Sampler(self._monitors)
        command = stream_command(self._monitors, mark, interval_s=self._interval_s, pids=self._pids)
        offset_s: float | None = None
        stream = await self._session.start(command)
        try:
            async for data in stream:
                frames = reader.feed(data)
                if frames and offset_s is None:
                    # The host's clock since boot against the run's: wrong by the network's delay, a few milliseconds.
                    offset_s = run_clock_s() - frames[-1].at_s
                for batch in sampler.feed(frames):
                    values = {channel.name: (channel.unit, value) for channel, value in batch.values.items()}
                    values |= self._of_the_set(values)
                    await self._emit(Samples(self._role, batch.at_s + (offset_s or 0.0), values))
                    self._in_vain = 0
                    self._told.clear()
                for kind in sampler.given_up:
                    await self._leave_out(kind)
        finally:
            await stream.close()

    async def _leave_out(self, kind: str) -> None:
        if kind not in self._left_out:
            self._left_out.add(kind)
            await self._say(f"{kind} gave what BenchHub cannot read and is left out; its log has the details.")

    def _of_the_set(self, values: Mapping[str, tuple[str, float]]) -> dict[str, tuple[str, float]]:
        found: dict[str, tuple[str, float]] = {}
        for wanted in (channel for monitor in self._monitors for channel in monitor.of_the_set):
            names = [wanted.of_cpu.format(cpu) for cpu in self._cpus] or [wanted.of_all]
            known = [values[n][1] for n in names if n in values]
            if known:
                found[wanted.name] = (wanted.unit, sum(known) / len(known))
        return found
