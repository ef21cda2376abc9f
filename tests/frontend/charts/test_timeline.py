"""The timeline of a run, parts of long lines, and sweeps over several factors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from django.test import Client

from agents.events import LoadStarted, PhaseFinished, PhaseStarted
from experiments.analysis.thinning import MAX_POINTS
from experiments.judging.comparing.factors import factors_of
from experiments.models import Member, Run, SampleSeries
from experiments.registry.notes.chart_notes import annotate
from tests.frontend.conftest import MakeRun

pytestmark = pytest.mark.django_db

T = 1_700_000_000
"""A second of 2023."""
EVENTS = (
    PhaseStarted("start", T + 970.0),
    PhaseFinished("start", 5.0),
    PhaseStarted("warm_up", T + 975.0),
    PhaseFinished("warm_up", 25.0),
    PhaseStarted("measure", T + 1000.0),
    LoadStarted(1, True, 60, T + 1000.5),
)
POINTS = 10_000


@pytest.fixture
def measured(make_run: MakeRun) -> Run:
    """A run with a reading of its server's CPUs every 10 ms for 100 s."""
    run = make_run(events=EVENTS, throughput_rps=1000.0)
    at_s = [0.01 * n for n in range(POINTS)]
    SampleSeries.objects.create(
        run=run, role="sut", channel="cpu_set.busy_ratio", unit="ratio", at_s=at_s, values=[0.5] * POINTS
    )
    return run


def test_phases_stand_on_the_axis_of_the_readings(browser: Client, measured: Run) -> None:
    found = browser.get(f"/t/perf/runs/{measured.number}/timeline").json()

    assert [(phase["label"], phase["state"], phase["from_s"], phase["to_s"]) for phase in found["phases"]] == [
        ("Start server", "done", -30.5, -25.5),
        ("Warm up", "done", -25.5, -0.5),
        ("Measure", "failed", -0.5, None),
    ]
    assert [line["channel"] for line in found["lines"]] == ["cpu_set.busy_ratio"]


def test_a_note_stands_at_its_second(browser: Client, measured: Run) -> None:
    browser.post(f"/t/perf/runs/{measured.number}/annotate", {"at_s": "12.5", "text": "fan stopped"})
    refused = browser.post(f"/t/perf/runs/{measured.number}/annotate", {"at_s": "inf", "text": "x"}, follow=True)

    found = browser.get(f"/t/perf/runs/{measured.number}/timeline").json()
    assert [(note["at_s"], note["text"], note["author"]) for note in found["notes"]] == [(12.5, "fan stopped", "ada")]
    assert "a number of seconds" in refused.content.decode()


@pytest.mark.parametrize("path", ["timeline", "samples"])
def test_a_part_of_a_long_line_has_all_its_points(browser: Client, measured: Run, path: str) -> None:
    whole = browser.get(f"/t/perf/runs/{measured.number}/{path}").json()
    part = browser.get(f"/t/perf/runs/{measured.number}/{path}?from_s=10&to_s=20").json()
    nonsense = browser.get(f"/t/perf/runs/{measured.number}/{path}?from_s=20&to_s=nan").json()

    assert whole["thinned"]
    assert len(whole["lines"][0]["values"]) <= MAX_POINTS
    line = part["lines"][0]
    assert len(line["values"]) == pytest.approx(1000, abs=4)
    assert line["at_s"][0] == pytest.approx(10, abs=0.02)
    assert line["at_s"][-1] == pytest.approx(20, abs=0.02)
    assert nonsense["lines"] == whole["lines"]


def test_a_run_without_events_has_an_empty_timeline(browser: Client, make_run: MakeRun, admin: Member) -> None:
    run = make_run(events=())

    annotate(admin, run, run.queued_at, "never started")
    found = browser.get(f"/t/perf/runs/{run.number}/timeline").json()

    assert (found["phases"], found["lines"], found["notes"]) == ([], [], [])


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class SomeVariant:
    recipe: Named
    parameters: dict[str, Any] = field(default_factory=dict)
    application: Named = Named("tomcat")
    sut: Named = Named("sut-1")
    offered_rate_rps: float | None = None
    concurrency: int | None = None


def test_factors_are_what_differs_between_variants() -> None:
    variants: list[Any] = [
        SomeVariant(Named("limits"), {"threads": 50, "gc": "G1", "nofile": 1024}),
        SomeVariant(Named("limits"), {"threads": 400, "gc": "ZGC", "nofile": 1024}, offered_rate_rps=5000.0),
        SomeVariant(Named("stock")),
    ]

    defaults: list[dict[str, Any]] = [{"threads": 200, "gc": "G1", "nofile": 1024}] * 2 + [{}]
    assert factors_of(variants, defaults) == {
        "recipe": ["limits", "limits", "stock"],
        "offered rate": ["", 5000.0, ""],
        "threads": [50, 400, ""],
        "gc": ["G1", "ZGC", ""],
        "nofile": [1024, 1024, ""],
    }


def test_what_a_variant_leaves_alone_has_its_default_among_the_factors() -> None:
    variants: list[Any] = [
        SomeVariant(Named("limits")),
        SomeVariant(Named("limits"), {"threads": 400, "turbo": True}, offered_rate_rps=5000.0, concurrency=8),
    ]
    defaults: list[dict[str, Any]] = [{"threads": 200, "gc": "G1", "turbo": False}] * 2
    assert factors_of(variants, defaults, rate_rps=2000.0, load=64) == {
        "offered rate": [2000.0, 5000.0],
        "connections or users": [64, 8],
        "threads": [200, 400],
        "turbo": ["false", "true"],
    }
    same = [SomeVariant(Named("limits")), SomeVariant(Named("limits"), {"threads": 200}, offered_rate_rps=2000.0)]
    assert factors_of(cast("list[Any]", same), [{"threads": 200}] * 2, rate_rps=2000.0) == {}
