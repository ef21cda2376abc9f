"""Reading the sources of a team around a run: noted when it ends, asked later by a worker of the default queue.

Nothing of it happens while a run measures, and nothing of it changes what a run is or is worth.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q, Window
from django.db.models.functions import Now, RowNumber

from agents.base.errors import MISTAKE_HINT
from agents.events import from_json
from agents.record import Record
from experiments.asking.prometheus.answers import PrometheusError, Series, channels_in
from experiments.asking.prometheus.client import Prometheus, Range
from experiments.asking.prometheus.queries import ChannelQuery, queries_of
from experiments.judging.evidence.load_course import began_unix_s
from experiments.models import Host, Member, PrometheusReading, PrometheusSource, Role, Run, SampleSeries
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict
from experiments.registry.events import RunEnded
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.outgoing.request import Resolver
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.registry.workers.outbox import READ_PROMETHEUS, send

logger = logging.getLogger(__name__)

MARGIN_S = 30.0
"""Before and behind the measured time."""
SETTLING = timedelta(seconds=45)
"""From the end of a run to the first try: until then the margin is over, and what was scraped last has arrived."""
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))
"""Between the tries: five of them within an hour and a half."""
MOST_TRIES = len(PAUSES) + 1
LEASE = timedelta(minutes=2)
"""How long a worker may take for a try before another one repeats it: the same channels are stored again."""
MOST_S = 60.0
"""Of one try; what could not be asked by then is asked by the next one."""
MOST_AT_ONCE = 50
MOST_PROBLEM_CHARS = 1000
_NOT_FOLDED = ("samples", "logged")


@dataclass(frozen=True)
class Measured:
    """When was measured, in seconds since 1970 by the run's clock; `zero_s` is t = 0 of its channels."""

    zero_s: float
    end_s: float


@dataclass
class Found:
    """What one try brought: rows by role and channel, and what went wrong.

    `is_silent`: the server did not even say what time it is there.
    """

    rows: dict[tuple[str, str], SampleSeries] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_final: bool = True
    is_silent: bool = False
    clock_ahead_s: float | None = None

    def fail(self, words: str, error: PrometheusError) -> None:
        self.problems.append(f"{words}{error}")
        self.is_final &= error.final


def run_ended(event: RunEnded) -> None:
    """Note what is to be read around a run that has measured, where its team has sources."""
    run = event.run
    if run.measured_at is None or run.is_demo:
        return
    sources = PrometheusSource.objects.filter(team=run.team_id, is_active=True)
    due_at = database_now() + SETTLING
    readings = [PrometheusReading(run=run, source=source, next_at=due_at) for source in sources]
    PrometheusReading.objects.bulk_create(readings, ignore_conflicts=True)


def read_again(member: Member, run: Run) -> list[PrometheusReading]:
    """Ask all sources of the team that are switched on anew; what they say takes the place of what they said."""
    require(member, Role.LAUNCHER)
    if not has_measured(run):
        raise Conflict(f"Run #{run.number} has not measured here, or still runs: Prometheus is asked after a run.")
    sources = list(PrometheusSource.objects.for_team(member.team).filter(is_active=True))
    if not sources:
        raise Conflict("The team has no Prometheus source that is switched on.")
    now = database_now()
    with transaction.atomic():
        PrometheusReading.objects.bulk_create(
            [PrometheusReading(run=run, source=source) for source in sources], ignore_conflicts=True
        )
        readings = PrometheusReading.objects.filter(run=run, source__in=sources)
        readings.update(next_at=now, tries=0)
        audit.record(member, "run.prometheus", f"run #{run.number}", after={"sources": [one.name for one in sources]})
        for pk in readings.values_list("pk", flat=True):
            transaction.on_commit(lambda pk=pk: send(READ_PROMETHEUS, pk), robust=True)  # type: ignore[misc]
    return readings_of(run)


def has_measured(run: Run) -> bool:
    """Whether it is over and there is a time to ask about."""
    return not run.is_live and run.measured_at is not None and run.origin == Run.Origin.EXECUTED and not run.is_demo


def readings_of(run: Run) -> list[PrometheusReading]:
    """By the name of the source."""
    return list(PrometheusReading.objects.filter(run=run).select_related("source").order_by("source__name"))


def due() -> list[int]:
    """What is to be read now: the readings of each team by turns, the longest waiting first."""
    turn = Window(RowNumber(), partition_by="source__team", order_by=("next_at", "pk"))
    found = PrometheusReading.objects.filter(_is_due()).annotate(turn=turn).order_by("turn", "next_at", "pk")
    return list(found.values_list("pk", flat=True)[:MOST_AT_ONCE])


def team_of(reading_id: int) -> int | None:
    """The id of the team whose server is asked; None when there is no such reading any more."""
    return PrometheusReading.objects.filter(pk=reading_id).values_list("source__team", flat=True).first()


def read(reading_id: int, *, resolve: Resolver | None = None) -> None:
    """Ask one source around one run once, if that is due, and store what it says. Nothing of it concerns the run.

    Where the server gives no answer at all, whatever else is to be asked of it waits as long as this.
    """
    taken = PrometheusReading.objects.filter(_is_due(), pk=reading_id)
    if not taken.update(next_at=Now() + LEASE, tries=F("tries") + 1):
        return  # it is over, or somebody else is at it
    reading = PrometheusReading.objects.select_related("source", "run__team", "run__application").get(pk=reading_id)
    found = Found()
    try:
        _ask(reading, found, resolve)
    except PrometheusError as error:
        found.fail("", error)
    except Exception:  # it would be repeated for ever, and nobody would be told
        logger.exception("the Prometheus reading %s could not be made, in a way that nobody foresaw", reading_id)
        found.fail("", PrometheusError(f"BenchHub made a mistake in asking it. {MISTAKE_HINT}"))
    _store(reading, found)


def _is_due() -> Q:
    """Its time has come, or is further away than any pause is long: the clock was set back meanwhile."""
    return Q(next_at__lte=Now()) | Q(next_at__gt=Now() + max(PAUSES))


def _ask(reading: PrometheusReading, found: Found, resolve: Resolver | None) -> None:
    if reading.tries > MOST_TRIES:
        raise PrometheusError(f"No worker came to the end of asking it. {MISTAKE_HINT}")
    run, until_s = reading.run, time.monotonic() + MOST_S
    measured = measured_of(run)
    server = Prometheus(reading.source, resolve=resolve)
    try:
        clock = server.clock()
    except PrometheusError as error:
        found.is_silent = not error.final
        raise
    found.clock_ahead_s, zero_s, end_s = clock.ahead_s, measured.zero_s + clock.ahead_s, measured.end_s + clock.ahead_s
    for query, role, values in _asked_of(run, queries_of(reading.source.queries)):
        words = f"{query.channel} ({role}): "
        if time.monotonic() > until_s:
            found.fail(words, PrometheusError(f"There was no time left for it within {MOST_S:g} s."))
            continue
        asked = Range.around(zero_s, end_s, query.step_s, margin_s=MARGIN_S, now_s=clock.now_s)
        try:
            for channel, series in channels_in(query, server.over(query.filled(values, asked.step_s), asked)).items():
                found.rows[role, channel] = _row(run, role, channel, query.unit, series, zero_s)
        except PrometheusError as error:
            found.fail(words, error)


def measured_of(run: Run) -> Measured:
    """When this run measured. PrometheusError when its record does not say so any more."""
    events = run.events.exclude(kind__in=_NOT_FOLDED).order_by("seq").values_list("payload", flat=True)
    record = Record.fold(map(from_json, events))
    load = next((one for one in record.loads.values() if one.measured), None)
    if load is None:
        raise PrometheusError("The run's record does not say when it measured.", final=True)
    end_s = load.at_unix_s + load.duration_s
    if run.finished_at is not None and run.finished_at.timestamp() > load.at_unix_s:
        end_s = min(end_s, run.finished_at.timestamp())
    return Measured(began_unix_s(record), end_s)


def _asked_of(run: Run, queries: tuple[ChannelQuery, ...]) -> Iterator[tuple[ChannelQuery, str, dict[str, str]]]:
    """Each query with the role that its answer is of and the values of its placeholders.

    One that names no host is asked once, also where several hosts have the role; one whose role nobody has, not at all.
    """
    by_role = hosts_by_role(run)
    hosts = Host.objects.only("name", "address").in_bulk(set(by_role.values()))
    of_run = {"run": str(run.number), "team": run.team.slug, "application": getattr(run.application, "name", "")}
    for query in queries:
        roles = [role for role in by_role if query.is_of(role)]
        for role in roles if query.is_of_a_host else roles[:1]:
            host = hosts[by_role[role]]
            yield query, role, {**of_run, "host": host.name, "address": host.address, "role": role}


def _row(run: Run, role: str, channel: str, unit: str, series: Series, zero_s: float) -> SampleSeries:
    at_s = [round(at - zero_s, 3) for at in series.at_unix_s]
    return SampleSeries(run=run, role=role, channel=channel, unit=unit, at_s=at_s, values=list(series.values))


def _store(reading: PrometheusReading, found: Found) -> None:
    """The channels and what follows, at once. Nothing when the run or the source was deleted meanwhile."""
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",), no_key=True).filter(pk=reading.run_id)
        locked = PrometheusReading.objects.select_for_update(of=("self",)).filter(pk=reading.pk)
        if not run.exists() or (row := locked.first()) is None:
            return
        stored = {(role, channel) for role, channel in row.channels}
        if found.rows:
            SampleSeries.objects.bulk_create(
                found.rows.values(),
                update_conflicts=True,
                unique_fields=["run", "role", "channel"],
                update_fields=["unit", "at_s", "values"],
            )
        if not found.problems:  # an answer that did not come says nothing of the channels of an earlier one
            for role, channel in stored - found.rows.keys():
                SampleSeries.objects.filter(run=reading.run_id, role=role, channel=channel).delete()
            stored = set()
        row.channels = sorted([*pair] for pair in stored | found.rows.keys())
        row.problem = "\n".join(found.problems)[:MOST_PROBLEM_CHARS]
        row.clock_ahead_s = found.clock_ahead_s
        row.read_at = database_now() if found.rows else row.read_at
        over = not found.problems or found.is_final or row.tries >= MOST_TRIES
        row.next_at = None if over or not reading.source.is_active else database_now() + PAUSES[row.tries - 1]
        row.save()
    if found.is_silent:
        _put_off(reading)
    if row.problem:
        what = "given up" if row.next_at is None else f"tried again at {row.next_at:%H:%M:%S} UTC"
        logger.warning("run %s: %s, %s: %s", reading.run_id, reading.source, what, " ".join(found.problems))


def _put_off(asked: PrometheusReading) -> None:
    """Have the source's other readings that are due, or soon will be, wait as long as the one that got no answer.

    It is no try of theirs, only of that one: of the runs of a night without the server all are read afterwards but the
    one or two an hour that were asked about meanwhile, which `read_again` is for.
    """
    until = database_now() + PAUSES[min(asked.tries, len(PAUSES)) - 1]
    others = PrometheusReading.objects.filter(source=asked.source_id, next_at__lt=until).exclude(pk=asked.pk)
    with transaction.atomic():
        free = others.select_for_update(of=("self",), skip_locked=True).order_by("pk").values_list("pk", flat=True)
        PrometheusReading.objects.filter(pk__in=list(free)).update(next_at=until)
