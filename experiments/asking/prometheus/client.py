"""The two questions that a Prometheus is asked: what time it is there, and what a query was over a time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import urlencode

from agents.base.clock import ahead_s
from experiments.asking.prometheus.answers import PrometheusError, Series, refusal_in, series_in, server_time_in
from experiments.asking.prometheus.sources import API, login_of
from experiments.models import PrometheusSource
from experiments.registry.database_clock import database_clock
from experiments.registry.hosts.keys import KeyFileError
from experiments.registry.outgoing.request import Resolver, get

LIMIT_S = 10.0
"""Of one answer."""
LIMIT_BYTES = 4 * 1024 * 1024
MOST_POINTS = 10_000
"""Of one series; Prometheus itself refuses more than 11,000."""


@dataclass(frozen=True)
class Range:
    """From when until when, in seconds since 1970 by the server's clock, both ends included."""

    start_s: float
    end_s: float
    step_s: int

    @classmethod
    def around(cls, zero_s: float, end_s: float, step_s: int, *, margin_s: float, now_s: float) -> Range:
        """With a point at `zero_s`, a step as long as asked for or longer, and the margin on either side.

        Not beyond now: for minutes, Prometheus says of the future what it saw last.
        """
        step_s = max(step_s, int((end_s - zero_s + 2 * margin_s) // MOST_POINTS) + 1)
        start_s = zero_s - (int(margin_s // step_s) + 1) * step_s
        return cls(round(start_s, 3), round(max(start_s, min(end_s + margin_s, now_s)), 3), step_s)


@dataclass(frozen=True)
class ServerClock:
    """The server's time when it was asked, and how far its clock is ahead for certain; negative when it is behind."""

    now_s: float
    ahead_s: float


class Prometheus:
    """A source with its login, for one reading. PrometheusError when its secret cannot be opened."""

    def __init__(self, source: PrometheusSource, *, limit_s: float = LIMIT_S, resolve: Resolver | None = None) -> None:
        self._url, self._limit_s, self._resolve = source.url, limit_s, resolve
        try:
            self._headers = {"Accept": "application/json", "User-Agent": "BenchHub", **login_of(source)}
        except KeyFileError as error:
            raise PrometheusError(f"The secret of the source cannot be read: {error}") from error

    def clock(self) -> ServerClock:
        """What time it is there, against the database's clock."""
        clock = database_clock()
        asked_s = time.monotonic() + clock.since_monotonic_s - clock.error_s
        server_s = server_time_in(self._get("/query", query="time()"))
        answered_s = time.monotonic() + clock.since_monotonic_s + clock.error_s
        return ServerClock(server_s, ahead_s(server_s, asked_s, answered_s))

    def over(self, promql: str, asked: Range) -> list[Series]:
        """The series of this query."""
        times = {"start": f"{asked.start_s:.3f}", "end": f"{asked.end_s:.3f}", "step": str(asked.step_s)}
        return series_in(self._get("/query_range", query=promql, **times))

    def _get(self, operation: str, **parameters: str) -> str:
        path = f"{API}{operation}?{urlencode(parameters)}"
        answer = get(
            self._url, path, self._headers, limit_s=self._limit_s, limit_bytes=LIMIT_BYTES, resolve=self._resolve
        )
        if answer.status is None:
            raise PrometheusError(answer.problem)
        if answer.problem:
            raise PrometheusError(answer.problem, final=True)
        if not answer.good:
            raise refusal_in(answer.status, answer.body)
        return answer.body
