"""Events and samples in months: where rows go, and how months go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.db.models import QuerySet

from experiments.keeping.retention.month_clearing import clear, clear_months
from experiments.keeping.retention.months import RUNS_OF_A_MONTH, TABLES, Month, attach, begin_month, make_part, months
from experiments.keeping.retention.removal import remove_expired
from experiments.keeping.retention.trash import KEPT_DAYS, trash_runs
from experiments.models import Member, Run, RunEvent, SampleSeries
from experiments.registry.database_clock import database_now
from tests.frontend.conftest import MakeRun, make_run

__all__ = ["make_run"]  # a fixture of the pages
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def as_installed(transactional_db: None) -> Iterator[None]:
    """The months that a test has begun are no longer there for the next one."""
    yield
    Run.objects.all().delete()
    with connection.cursor() as cursor:
        there = months()
        for table in TABLES:
            for month in there:
                cursor.execute(f"DROP TABLE {month.part(table)}")
            make_part(cursor, table, Month(0).part(table))
            attach(cursor, table, Month(0))
        cursor.execute("SELECT setval(pg_get_serial_sequence('experiments_run', 'id'), 1, false)")


def as_if_begun(newest: Month, year: int) -> None:
    """The newest month is called after one of that year."""
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"ALTER TABLE {newest.part(table)} RENAME TO {table}_{newest.number}_{year}_01")


def a_later_month() -> Month:
    """Begin one, as if the newest had begun long ago."""
    newest = months()[-1]
    if newest.called:
        as_if_begun(newest, 2020)
    begun = begin_month()
    assert begun is not None
    return begun


def sampled(run: Run) -> Run:
    SampleSeries.objects.create(run=run, role="sut", channel="cpu", unit="ratio", at_s=[0.0, 1.0], values=[0.5, 0.6])
    return run


def removed_for_good(admin: Member, *runs: Run) -> None:
    trash_runs(admin, [run.number for run in runs])
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(
        trashed_at=database_now() - timedelta(days=KEPT_DAYS, hours=1)
    )
    assert remove_expired() == len(runs)


def rows(run: Run) -> int:
    return sum(model._default_manager.filter(run_id=run.pk).count() for model in (RunEvent, SampleSeries))


def parts_of(found: QuerySet[RunEvent]) -> set[str]:
    """The parts of the table that PostgreSQL would look into."""
    return set(re.findall(r'"Relation Name": "(\w+)"', found.explain(format="json")))


def test_rows_go_into_the_month_in_which_their_run_was_made(make_run: MakeRun) -> None:
    before = make_run(throughput_rps=1000.0)
    month = begin_month()
    after = sampled(make_run(throughput_rps=1000.0))

    assert month is not None
    assert (month.number, month.called) == (1, f"{database_now():%Y-%m}")
    assert [one.number for one in months()] == [0, 1]
    assert before.pk < RUNS_OF_A_MONTH <= after.pk
    assert parts_of(RunEvent.objects.filter(run=before)) == {Month(0).part(TABLES[0])}
    assert parts_of(RunEvent.objects.filter(run=after)) == {month.part(TABLES[0])}
    assert (after.events.count(), after.samples.count()) == (before.events.count(), 1)
    assert before.events.count() > 0
    assert begin_month() is None


def test_a_month_that_was_begun_by_half_is_gone_on_with(make_run: MakeRun) -> None:
    month = Month(1, f"{database_now():%Y-%m}")
    with connection.cursor() as cursor:
        for table in TABLES:  # its parts are there, and whoever made them ended before the ids were raised
            make_part(cursor, table, month.part(table))
            attach(cursor, table, month)
    assert make_run().pk < RUNS_OF_A_MONTH

    assert begin_month() is None
    assert make_run().pk >= RUNS_OF_A_MONTH


def test_a_clock_that_was_set_back_only_begins_another_month(make_run: MakeRun) -> None:
    as_if_begun(a_later_month(), 2031)
    of_the_future = make_run(throughput_rps=1000.0)

    again = begin_month()

    assert again == Month(2, f"{database_now():%Y-%m}")
    assert make_run().pk >= again.first_id > of_the_future.pk
    assert of_the_future.events.count() > 0


def test_rows_of_a_removed_run_go_with_their_month(admin: Member, make_run: MakeRun) -> None:
    old = sampled(make_run(throughput_rps=1000.0))
    removed_for_good(admin, old)
    assert rows(old) > 1

    a_later_month()
    assert clear_months() == 0  # a run that is being stored may still belong to the last but one
    kept = make_run(throughput_rps=1000.0)
    a_later_month()
    assert clear_months() == 2

    assert [month.number for month in months()] == [1, 2]
    assert rows(old) == 0
    assert kept.events.count() > 0


def test_a_run_that_stays_takes_its_rows_along(admin: Member, make_run: MakeRun) -> None:
    runs = [sampled(make_run(throughput_rps=1000.0)) for _ in range(4)]
    stays = runs.pop(1)
    events, before = list(stays.events.order_by("seq").values()), rows(stays)
    removed_for_good(admin, *runs)

    assert clear(Month(0)) == 2

    assert [rows(run) for run in runs] == [0, 0, 0]
    assert (rows(stays), list(stays.events.order_by("seq").values())) == (before, events)
    assert make_run(throughput_rps=1.0).events.count() > 0
    assert clear(Month(0)) == 0


def test_a_few_removed_runs_are_deleted_from_a_month_that_stays(admin: Member, make_run: MakeRun) -> None:
    runs = [sampled(make_run(throughput_rps=1000.0)) for _ in range(4)]
    gone, *stay = runs
    before = [rows(run) for run in stay]
    removed_for_good(admin, gone)

    assert clear(Month(0)) == 0

    assert rows(gone) == 0
    assert [rows(run) for run in stay] == before


def test_a_month_waits_while_most_of_it_is_in_the_trash(admin: Member, make_run: MakeRun) -> None:
    runs = [make_run(throughput_rps=1000.0) for _ in range(4)]
    removed_for_good(admin, runs[0])
    trash_runs(admin, [runs[1].number, runs[2].number])

    assert clear(Month(0)) == 0
    assert rows(runs[0]) > 0


def test_a_month_that_somebody_reads_is_cleared_the_next_time(admin: Member, make_run: MakeRun) -> None:
    runs = [make_run(throughput_rps=1000.0) for _ in range(2)]
    removed_for_good(admin, runs[0])
    where = connection.settings_dict
    with psycopg.connect(host=where["HOST"], user=where["USER"], dbname=where["NAME"]) as reader:
        reader.execute(f"SELECT count(*) FROM {TABLES[0]} WHERE run_id = %s", [runs[1].pk])
        assert clear(Month(0)) == 0  # the reader's transaction goes on
        assert rows(runs[0]) > 0

    assert clear(Month(0)) == 2
    assert [rows(run) > 0 for run in runs] == [False, True]
