"""Measures events and samples in months against one table: the upgrade, reading, writing, and a month that goes.

Works in a database `growth` of its own on the embedded PostgreSQL of BENCHHUB_DATA_DIR (give it a scratch directory),
which is made anew. It is filled with the tables of before, copied, and upgraded. Then the same statements ask both in
turns, so that whatever else the machine does meets them alike: only ratios say something. Prints Markdown.
"""

# ruff: noqa: S608 - names of tables, none of which anybody has typed in

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import psycopg
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection

import bench.django_project  # noqa: F401 - before the models
from agents.events import Samples
from experiments.keeping.demo.seeding import seed_runs
from experiments.keeping.retention.month_clearing import clear_months
from experiments.keeping.retention.months import TABLES, begin_month, months
from experiments.models import Member, Role, Run, RunEvent, SampleSeries, Team
from experiments.running.executing.recorder import Recorder

BEFORE = "0017_sites"
DATABASE = "growth"
KINDS = ("logged", "logged", "logged", "step_applied", "phase_finished", "load_reported")
CHANNELS, POINTS = 10, 60
LINE = "wrk: 12 threads and 400 connections, 31,416 requests in 1.00 s, 2.17 MB read, latency 1.4 ms"
READER_PAUSE_S = 0.002
WRITERS, WRITING_S, VALUES = 8, 15, 50


@dataclass(frozen=True)
class Asked:
    """A statement on the tables of now, and what it does in words."""

    name: str
    sql: str
    parameters: tuple[Any, ...]

    def of_before(self) -> Asked:
        return replace(self, sql=_of_before(self.sql))

    def act(self) -> None:
        execute(self.sql, *self.parameters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=60, help="events of each run")
    parser.add_argument("--months", type=int, default=24, help="months that there are while statements are timed")
    parser.add_argument("--times", type=int, default=300, help="how often each statement is timed")
    given = parser.parse_args()
    anew(DATABASE)
    call_command("migrate", "experiments", BEFORE, verbosity=0)
    for other in {app.label for app in apps.get_app_configs() if find_spec(f"{app.name}.migrations")} - {"experiments"}:
        call_command("migrate", other, verbosity=0)
    _fill(given.runs, given.events)
    _copy()
    _print(_upgrade())
    for _ in range(given.months):
        _begin_another()
    execute("VACUUM ANALYZE")
    _print(_statements(given.times))
    _print(_going(given.runs // 2, given.events))
    print(_written())


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line, flush=True)


def anew(name: str) -> None:
    """Make this database anew, empty, and connect to it."""
    usual = connection.settings_dict
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        cursor.execute(f"CREATE DATABASE {name}")
    connection.close()
    usual["NAME"] = name


def execute(statement: str, *parameters: Any) -> list[Any]:
    """Have the database do this; the rows of the answer, if it has any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def _fill(runs: int, events: int) -> None:
    print(f"# {runs} runs with {events} events and {CHANNELS} channels of {POINTS} points", file=sys.stderr)
    user = get_user_model().objects.create_user("bench", email="bench@localhost.invalid")
    team = Team.objects.create(slug="bench", name="Bench", is_demo=True)
    Member.objects.create(team=team, user=user, role=Role.ADMIN)
    seed_runs(team, runs)
    execute("DELETE FROM experiments_sampleseries")
    _rows(TABLES[0], TABLES[1], events, "true")
    Run.objects.update(last_seq=events)


def _rows(event_table: str, sample_table: str, events: int, which: str) -> None:
    """Events and samples of the runs for which the condition holds, as long as those of real ones."""
    execute(
        f"INSERT INTO {event_table} (run_id, seq, kind, payload, fence, at) SELECT run.id, seq, "
        "(%s::text[])[1 + seq %% 6], jsonb_build_object('kind', 'logged', 'source', 'wrk', 'level', 'info', 'lines', "
        "jsonb_build_array(%s || seq, %s || run.id), 'measured', true), 1, run.queued_at + seq * interval '1 s' "
        f"FROM experiments_run AS run CROSS JOIN generate_series(1, %s) AS seq WHERE {which} ORDER BY run.id, seq",
        list(KINDS),
        LINE,
        LINE,
        events,
    )
    execute(
        f"INSERT INTO {sample_table} (run_id, role, channel, unit, at_s, \"values\") SELECT run.id, 'sut', "
        "'channel.' || channel, 'ratio', (SELECT array_agg(at::float8) FROM generate_series(1, %s) AS at), "
        "(SELECT array_agg(round((random() + (channel + at) * 0)::numeric, 4)::float8) "
        "FROM generate_series(1, %s) AS at) "
        f"FROM experiments_run AS run CROSS JOIN generate_series(1, %s) AS channel WHERE {which}",
        POINTS,
        POINTS,
        CHANNELS,
    )


def _copy() -> None:
    """The tables of before once more, with all that they had."""
    for table in TABLES:
        copied = _of_before(table)
        execute(f"CREATE TABLE {copied} (LIKE {table} INCLUDING ALL)")
        execute(f"INSERT INTO {copied} SELECT * FROM {table} ORDER BY id")
        execute(f"SELECT setval(pg_get_serial_sequence('{copied}', 'id'), max(id)) FROM {copied}")
        execute(
            f"ALTER TABLE {copied} ADD FOREIGN KEY (run_id) REFERENCES experiments_run DEFERRABLE INITIALLY DEFERRED"
        )
    execute("VACUUM ANALYZE")


def _of_before(text: str) -> str:
    for table in TABLES:
        text = text.replace(table, table.replace("experiments_", "before_"))
    return text


def _upgrade() -> Iterator[str]:
    """The upgrade of the filled tables, while somebody reads the events of a run all the time."""
    rows = [execute(f"SELECT count(*), pg_total_relation_size('{table}') FROM {table}")[0] for table in TABLES]
    waited_s, stop = [], threading.Event()
    number = Run.objects.latest("number").pk

    def read() -> None:
        where = connection.settings_dict
        with psycopg.connect(host=where["HOST"], user=where["USER"], dbname=DATABASE, autocommit=True) as reader:
            while not stop.wait(READER_PAUSE_S):
                began_s = time.perf_counter()
                reader.execute("SELECT count(*) FROM experiments_runevent WHERE run_id = %s", [number])
                waited_s.append(time.perf_counter() - began_s)

    reading = threading.Thread(target=read)
    reading.start()
    began_s = time.perf_counter()
    call_command("migrate", verbosity=0)
    took_s = time.perf_counter() - began_s
    stop.set()
    reading.join()
    after = [execute(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]
    if after != [count for count, _ in rows]:
        raise SystemExit(f"rows were lost: {rows} became {after}")
    size = sum(size for _, size in rows) / 1e6
    yield (
        f"{sum(after):,} rows in {size:,.0f} MB were upgraded in {took_s:.1f} s. Somebody who read meanwhile waited "
        f"{max(waited_s) * 1000:.0f} ms at most, {statistics.median(waited_s) * 1000:.1f} ms usually.\n"
    )


def _begin_another() -> None:
    """A month, as if the newest had begun long ago."""
    newest = months()[-1]
    for table in TABLES:
        if newest.called:
            execute(f"ALTER TABLE {newest.part(table)} RENAME TO {table}_{newest.number}_2020_01")
    begin_month()


def _asked() -> list[Asked]:
    """Those that pages ask most, in the form that the ORM gives them."""
    last = Run.objects.latest("number")
    ten = list(Run.objects.order_by("-number")[:10].values_list("pk", flat=True))
    events, samples = RunEvent.objects.filter(run=last), SampleSeries.objects.all()
    found = {
        "log of a run": events.filter(kind__in=["logged", "phase_started"]).order_by("seq"),
        "newest events of a run": events.filter(seq__gt=last.last_seq - 5).order_by("seq")[:100],
        "one kind of 10 runs": RunEvent.objects.filter(run__in=ten, kind="load_reported").order_by("run_id"),
        "phases of the team's last 50": RunEvent.objects.filter(
            run__in=Run.objects.filter(team=last.team_id).order_by("-number").values("pk")[:50], kind="phase_finished"
        ),
        "all channels of a run": samples.filter(run=last).order_by("role", "channel"),
        "one channel of 10 runs": samples.filter(run__in=ten, channel="channel.1").order_by("run__number"),
        "events of a team, first 500": RunEvent.objects.filter(run__team=last.team_id).order_by("pk")[:500],
    }
    return [Asked(name, *query.query.sql_with_params()) for name, query in found.items()]


def _statements(times: int) -> Iterator[str]:
    yield "| statement | one table, p50 ms | months, p50 ms | ratio |\n| --- | ---: | ---: | ---: |"
    for asked in _asked():
        yield _row(asked.name, *_in_turns(times, asked.of_before().act, asked.act))
    pk = Run.objects.latest("number").pk
    columns = "(run_id, seq, kind, payload, fence, at) VALUES (%s, %s, 'logged', '{\"lines\": [\"a line\"]}', 1, now())"
    numbers = iter(range(100_000, 10_000_000))

    def write(table: str) -> Callable[[], object]:
        return lambda: execute(f"INSERT INTO {table} {columns}", pk, next(numbers))

    yield _row("store one event", *_in_turns(times * 5, write(_of_before(TABLES[0])), write(TABLES[0])))


def _row(name: str, before: float, now: float) -> str:
    return f"| {name} | {before:.2f} | {now:.2f} | {now / before:.2f} |"


def _in_turns(times: int, one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """The median of each, in ms."""
    took: tuple[list[float], list[float]] = ([], [])
    for at in range(times + 5):
        for place, act in enumerate((one, other)):
            began_s = time.perf_counter()
            act()
            if at >= 5:
                took[place].append((time.perf_counter() - began_s) * 1000)
    return statistics.median(took[0]), statistics.median(took[1])


def _going(runs: int, events: int) -> Iterator[str]:
    """A month of runs goes: its rows are deleted from the tables of before, its parts are dropped now."""
    month = months()[-1]
    execute(
        "INSERT INTO experiments_run SELECT (jsonb_populate_record(run, jsonb_build_object('id', %s + run.id, "
        "'number', 1000000 + run.number))).* "
        "FROM experiments_run AS run WHERE id <= (SELECT min(id) + %s FROM experiments_run)",
        month.first_id,
        runs - 1,
    )
    which = f"run.id >= {month.first_id}"
    _rows(TABLES[0], TABLES[1], events, which)
    _rows(_of_before(TABLES[0]), _of_before(TABLES[1]), events, which)
    gone = [row[0] for row in execute(f"SELECT id FROM experiments_run AS run WHERE {which}")]
    deleting = _cost(lambda: _delete(gone))
    execute("DELETE FROM experiments_run WHERE id = ANY(%s)", gone)
    for _ in range(2):  # a month is dropped once it is no longer one of the newest two
        _begin_another()
    empty = [one for one in months()[:-2] if one.number not in (0, month.number)]
    for table in TABLES:
        execute("DROP TABLE " + ", ".join(one.part(table) for one in empty))
    dropping = _cost(clear_months)
    yield f"\n| a month of {len(gone):,} runs goes | s | MB of PostgreSQL's log |\n| --- | ---: | ---: |"
    yield f"| rows deleted, {events} events and {CHANNELS} channels a run | {deleting[0]:.2f} | {deleting[1]:.1f} |"
    yield f"| its two parts dropped | {dropping[0]:.2f} | {dropping[1]:.1f} |"


def _delete(gone: list[int]) -> None:
    for start in range(0, len(gone), 50):
        for table in TABLES:
            execute(f"DELETE FROM {_of_before(table)} WHERE run_id = ANY(%s)", gone[start : start + 50])


def _written() -> str:
    """How many events the recorders of live runs store in a second, each in its own transaction."""
    runs = list(Run.objects.order_by("-number")[:WRITERS].values_list("pk", "fence"))
    before, ends_s = RunEvent.objects.count(), time.monotonic() + WRITING_S

    def write(pk: int, fence: int) -> None:
        recorder = Recorder(pk, fence)
        while time.monotonic() < ends_s:
            values = {f"cpu.{cpu}.busy_ratio": ("ratio", 0.5) for cpu in range(VALUES)}
            recorder.store(Samples("sut", time.time(), values))
        connection.close()

    writers = [threading.Thread(target=write, args=run) for run in runs]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    stored = RunEvent.objects.count() - before
    return f"\n{WRITERS} recorders stored {stored / WRITING_S:.0f} events of {VALUES} values in a second."


def _cost(act: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and MB that it wrote into PostgreSQL's log."""
    position, began_s = execute("SELECT pg_current_wal_insert_lsn()")[0][0], time.perf_counter()
    act()
    took_s = time.perf_counter() - began_s
    return took_s, float(execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)", position)[0][0]) / 1e6


if __name__ == "__main__":
    main()
