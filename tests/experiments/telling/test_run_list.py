"""The list of runs: every filter, every order, both directions, and CSV of exactly the view."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from experiments.models import Member, Run
from experiments.registry.errors import RequestError
from experiments.telling.run_list.listing import SORTS, RunFilter, csv_rows, runs_page

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def runs(admin: Member, other_admin: Member, stock: dict[str, Any]) -> list[Run]:
    """Twelve runs, a third of them without figures and two with the same ones; and one of another team."""
    Run.objects.create(team=other_admin.team, number=1, state="finished", throughput_rps=1.0)
    made = []
    for number in range(1, 13):
        figured = number % 3 != 0
        made.append(
            Run.objects.create(
                team=admin.team,
                number=number,
                state="finished" if figured else "queued",
                outcome="succeeded" if figured else "",
                validity=("valid" if number % 2 else "invalid") if figured else "",
                recipe=stock["recipe"] if number > 6 else None,
                sut=stock["sut"],
                labels={"branch": "main" if number % 2 else "dev", "commit": f"c{number}"},
                tags=["nightly"] if number < 4 else [],
                parameters={"heap": "4g" if number % 2 else "8g", "pool.size": str(number // 4)},
                throughput_rps=float(number // 2 * 100) if figured else None,
                latency_p99_ms=float(20 - number) if figured else None,
                finished_at=START + timedelta(hours=number) if figured else None,
                metrics={"throughput_rps": float(number // 2 * 100)} if figured else {},
                archived=number == 12,
            )
        )
    return made


def numbers(admin: Member, **given: str) -> list[int]:
    return [run.number for run in runs_page(admin.team, RunFilter.from_query(given)).rows]


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        ({"query": "#4"}, [4]),
        ({"query": "4"}, [4]),
        ({"query": "limits"}, [11, 10, 9, 8, 7]),
        ({"query": "limits main"}, [11, 9, 7]),
        ({"query": "nightly"}, [3, 2, 1]),
        ({"query": "sut-1 branch:dev state:queued"}, [6]),
        ({"query": "commit:c7"}, [7]),
        ({"query": "c11"}, [11]),
        ({"query": "recipe:lim tag:none"}, []),
        ({"query": "% _ ' \" \\"}, []),
        ({"validity": "invalid"}, [10, 8, 4, 2]),
        ({"state": "queued"}, [9, 6, 3]),
        ({"outcome": "succeeded", "recipe": "limits"}, [11, 10, 8, 7]),
        ({"tag": "nightly", "label": "branch=main"}, [3, 1]),
        ({"label": "branch=main, commit=c5"}, [5]),
        ({"param": "heap=4g, pool.size=1"}, [7, 5]),
        ({"query": "param.heap:8g param.pool.size:2"}, [10, 8]),
        ({"sut": "nope"}, []),
        ({"archived": "true"}, [12]),
        ({"experiment": "7"}, []),
        ({"since": "2999-01-01"}, []),
        ({"until": "2999-01-01T00:00:00Z", "query": "1"}, [1]),
    ],
)
def test_filters_narrow_the_list(admin: Member, runs: list[Run], given: dict[str, str], expected: list[int]) -> None:
    assert numbers(admin, **given) == expected


@pytest.mark.parametrize(
    "word, found",
    [
        ("077a459b47", True),
        ("077a", True),
        ("077A45", True),
        ("a459", False),
        ("fix/Slow-start", True),
        ("slow", True),
        ("start", True),
        ("low", False),
        ("start-slow", True),
        ("slow-stop", False),
        ("branch", True),
        ("release", True),
        ("nine", True),
        ("äl", False),
        ("älteste", True),
        ("x1", True),
        ("x", False),
        ("a-very-long-configuration", True),
        ("/", False),
        ("'", False),
        ("%", False),
    ],
)
def test_a_word_is_found_where_one_of_labels_or_tags_begins_with_it(admin: Member, word: str, found: bool) -> None:
    labels = {"branch": "fix/slow-Start", "commit": "077a459b47", "x1": "a very long configurations name"}
    Run.objects.create(team=admin.team, number=1, labels=labels, tags=["Release", "nine.älteste"])
    Run.objects.create(team=admin.team, number=2, labels={"other": "main"})
    assert numbers(admin, query=word) == ([1] if found else [])


@pytest.mark.parametrize(
    "given, field",
    [
        ({"state": "sleeping"}, "state"),
        ({"outcome": "x"}, "outcome"),
        ({"validity": "x"}, "validity"),
        ({"experiment": "x"}, "experiment"),
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-13-45"}, "until"),
        ({"label": "branch"}, "label"),
        ({"label": "a=\0"}, "label"),
        ({"param": "heap"}, "param"),
        ({"param": "heap=\0"}, "param"),
        ({"query": "\0"}, "query"),
        ({"recipe": "x" * 501}, "recipe"),
    ],
)
def test_a_bad_filter_names_the_field(given: dict[str, str], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        RunFilter.from_query(given)
    assert caught.value.field == field


@pytest.mark.parametrize("sort", [sign + key for key in SORTS for sign in ("", "-")])
@pytest.mark.parametrize("limit", [1, 3, 4, 50])
def test_pages_hold_every_run_once_in_order_and_lead_back(
    admin: Member, runs: list[Run], sort: str, limit: int
) -> None:
    whole = [run.number for run in runs_page(admin.team, RunFilter(), sort=sort, limit=200).rows]
    key = sort.removeprefix("-")
    figured = [n for n in whole if getattr(runs[n - 1], key) is not None]
    assert len(whole) == 11
    assert whole[: len(figured)] == figured  # nulls last, in both directions
    values = [getattr(runs[n - 1], key) for n in figured]
    assert values == sorted(values, reverse=sort.startswith("-"))
    seen: list[int] = []
    cursor, pages = "", []
    while True:
        page = runs_page(admin.team, RunFilter(), sort=sort, cursor=cursor, limit=limit)
        pages.append([run.number for run in page.rows])
        seen += pages[-1]
        if not page.next_cursor:
            break
        cursor = page.next_cursor
    assert seen == whole
    for expected in reversed(pages[:-1]):
        page = runs_page(admin.team, RunFilter(), sort=sort, cursor=page.previous_cursor, limit=limit)
        assert [run.number for run in page.rows] == expected
    assert page.previous_cursor == ""


def test_a_page_costs_one_query_and_one_for_each_kind_of_name(
    admin: Member, runs: list[Run], django_assert_num_queries: Any
) -> None:
    names = ("recipe", "sut")  # the others are not set in these runs
    with django_assert_num_queries(1 + len(names)):
        for run in runs_page(admin.team, RunFilter()).rows:
            assert (run.recipe and run.recipe.name, run.sut and run.sut.name, run.created_by) is not None


@pytest.mark.parametrize(
    "cursor", ["x", "é", "bnVsbA", "WzEsMl0", "W10", "WyItbnVtYmVyIixudWxsLDEsMV0", "[" * 3000, "\0"]
)
def test_a_cursor_from_elsewhere_is_refused(admin: Member, cursor: str) -> None:
    with pytest.raises(RequestError) as caught:
        runs_page(admin.team, RunFilter(), cursor=cursor)
    assert caught.value.field == "cursor"


@pytest.mark.parametrize(
    "given, field", [({"limit": 0}, "limit"), ({"limit": 201}, "limit"), ({"sort": "spec"}, "sort")]
)
def test_a_page_that_cannot_be_is_refused(admin: Member, given: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        runs_page(admin.team, RunFilter(), **given)
    assert caught.value.field == field


def test_csv_is_the_view_and_no_formula(admin: Member, runs: list[Run]) -> None:
    Run.objects.filter(number=11, team=admin.team).update(labels={"x": "1"}, tags=["=cmd|' /C calc'!A0"])
    columns = ["number", "throughput_rps", "tags", "recipe", "finished_at"]
    rows = list(csv.reader(csv_rows(admin.team, RunFilter(), "-throughput_rps", columns)))
    assert rows[0] == columns
    view = runs_page(admin.team, RunFilter(), sort="-throughput_rps").rows
    assert [int(row[0]) for row in rows[1:]] == [run.number for run in view]
    assert rows[1] == ["11", "500.0", "'=cmd|' /C calc'!A0", "limits v1", "2026-01-01T11:00:00+00:00"]
    with pytest.raises(RequestError):
        csv_rows(admin.team, RunFilter(), columns=["spec"])
    assert len(list(csv_rows(admin.team, RunFilter()))) == 12
