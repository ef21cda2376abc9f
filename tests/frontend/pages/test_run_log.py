"""The log page of a run: any line by its number, the steps beside it, what failed, a search."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from agents.events import (
    AnyEvent,
    Failed,
    LoadStarted,
    Logged,
    PhaseFinished,
    PhaseStarted,
    StepIntended,
)
from experiments.models import Run
from experiments.registry.logs.log_lines import find, lines_of, outline_of, page_of
from experiments.registry.runs.artifacts import keep
from tests.frontend.conftest import MakeRun
from tests.frontend.flat import flat

pytestmark = pytest.mark.django_db

STORY: tuple[AnyEvent, ...] = (
    PhaseStarted("connect"),
    Logged("runner", ("one", "two", 'three "quoted" 50%_x')),
    PhaseFinished("connect", 0.5),
    PhaseStarted("tune"),
    StepIntended(0, "sysctl: 2 keys", {}, ()),
    Logged("runner", ("sysctl: 2 keys", "  a: 1 -> 2")),
    Logged("sut-1", ("disk is nearly full",), "warning"),
    PhaseFinished("tune", 1.0),
    PhaseStarted("measure"),
    LoadStarted(0, True, 60, 1000.0),
    Failed("measure", "The tool ended early."),
    Logged("runner", ("The tool ended early.",), "error"),
)
TEXTS = ["Phase connect", "one", "two", 'three "quoted" 50%_x', "Phase tune", "sysctl: 2 keys", "  a: 1 -> 2"]
TEXTS += ["disk is nearly full", "Phase measure", "The tool ended early."]


@pytest.fixture
def failed(make_run: MakeRun) -> Run:
    return make_run(events=STORY, state="finished", outcome="failed")


@pytest.fixture
def long(make_run: MakeRun) -> Run:
    """5,001 lines: 50 events of 100 lines behind the line of their phase."""
    events = (Logged("server", tuple(f"request {100 * n + i}" for i in range(100))) for n in range(50))
    return make_run(events=(PhaseStarted("measure"), *events), state="finished", outcome="succeeded")


def test_lines_are_numbered_over_all_events(failed: Run) -> None:
    assert [line.text for line in lines_of(failed)] == TEXTS
    assert [(line.number, line.text) for line in page_of(failed, 1)] == list(enumerate(TEXTS, start=1))


@pytest.mark.parametrize("first, most", [(1, 1), (3, 2), (4, 3), (8, 100), (11, 5)])
def test_any_part_of_the_log_is_found_by_its_numbers(failed: Run, first: int, most: int) -> None:
    expected = list(enumerate(TEXTS, start=1))[first - 1 : first - 1 + most]

    assert [(line.number, line.text) for line in page_of(failed, first, most)] == expected


def test_the_outline_says_where_steps_begin_and_where_problems_are(failed: Run) -> None:
    outline = outline_of(failed)

    assert outline.total == len(TEXTS)
    assert outline.problems == [8, 10]
    assert outline.first_error == 10
    assert [(m.kind, m.line) for m in outline.marks if m.kind in ("phase_started", "step_intended")] == [
        ("phase_started", 1),
        ("phase_started", 5),
        ("step_intended", 6),
        ("phase_started", 9),
    ]


@pytest.mark.parametrize(
    "text, numbers",
    [
        ("SYSCTL", [6]),
        ('"QUOTED"', [4]),
        ("50%_", [4]),
        ("%", [4]),
        ("phase", [1, 5, 9]),
        ("\\", []),
        ("ended early", [10]),
    ],
)
def test_a_search_takes_the_text_as_it_is_in_any_case_of_letters(failed: Run, text: str, numbers: list[int]) -> None:
    assert [line.number for line in find(failed, text).lines] == numbers


def test_a_search_is_bounded_and_says_so(long: Run) -> None:
    found = find(long, "request", most=20)

    assert [line.number for line in found.lines] == list(range(2, 22))
    assert found.more
    assert not find(long, "request 4999").more


def test_a_failed_run_opens_at_its_error_with_its_step_marked(browser: Client, failed: Run) -> None:
    page = browser.get(f"/t/perf/runs/{failed.number}/log/").content.decode()

    assert 'data-open="10"' in page
    assert re.search(r'<li class="is-failed" aria-current="step"> ?<a href="\?line=9#L9"', flat(page))
    assert re.search('id="L10"> ?<a class="log-number" href="#L10">10</a>', flat(page))
    assert "1. sysctl: 2 keys" in page
    assert "Load 1, 60 s measured" in page
    assert json.loads(re.search(r'id="log-problems" type="application/json">(.*?)</script>', page)[1]) == [8, 10]  # type: ignore[index]


def test_the_page_holds_a_part_and_the_rest_comes_by_number(browser: Client, long: Run) -> None:
    address = f"/t/perf/runs/{long.number}/log/"
    page = browser.get(address).content.decode()
    further = browser.get(f"{address}lines?after=4990&limit=100").json()

    assert 'data-total="5001"' in page
    assert page.count('class="log-line"') == 300
    assert further["total"] == 5001
    assert [line[0] for line in further["lines"]] == list(range(4991, 5002))
    assert further["lines"][-1][2:] == ["server", "info", "request 4999"]
    assert len(browser.get(f"{address}lines?after=0&limit=999999").json()["lines"]) == 1000
    assert 'id="L4000"' in browser.get(f"{address}?line=4000").content.decode()


def test_a_file_of_the_run_is_read_the_same_way(browser: Client, failed: Run) -> None:
    kept = keep(failed, "1-measure-wrk.txt", b"Running 10s test\r\n  <b>Latency</b>   1.00ms\n")
    packed = keep(failed, "result.jtl.gz", b"\x1f\x8b", media_type="application/gzip")
    address = f"/t/perf/runs/{failed.number}/log/"

    page = browser.get(f"{address}?file={kept.pk}&q=latency").content.decode()

    assert "&lt;b&gt;Latency" in page
    assert "<b>Latency" not in page
    assert "1 line with" in page
    assert browser.get(f"{address}lines?file={kept.pk}").json()["total"] == 2
    assert browser.get(f"{address}?file={packed.pk}").status_code == 404
    assert "result.jtl.gz" not in browser.get(address).content.decode()


@pytest.mark.parametrize("fields", [{"state": "measuring"}, {"state": "finished", "outcome": "lost"}, {}])
def test_the_raw_log_is_always_there(browser: Client, make_run: MakeRun, fields: dict[str, Any]) -> None:
    run = make_run(events=STORY, **fields)

    answer = browser.get(f"/t/perf/runs/{run.number}/log")

    assert answer.headers["Content-Disposition"] == f'attachment; filename="run-{run.number}.log"'
    assert answer.content.decode().splitlines()[7].endswith("sut-1 warning: disk is nearly full")
    assert browser.get(f"/t/perf/runs/{run.number}/log/").status_code == 200
