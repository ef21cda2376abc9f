"""Stored runs judged again: after a change of the team's thresholds, with what follows from it."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from experiments.asking.intake.imports import import_reports
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.judging.evidence.thresholds import change_thresholds
from experiments.models import Experiment, Member, Run, Series, StoredVerdict
from experiments.running.ending.rejudging import rejudge
from tests.experiments.finished import finish_next, report, whole_run

WRK = """Running 10s test @ http://127.0.0.1:8080/
  2 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00ms    1.00ms  20.00ms   90.00%
    Req/Sec     8.00k   100.00     9.00k    70.00%
  160000 requests in 10.00s, 100.00MB read
Requests/sec:  16000.00
Transfer/sec:     10.00MB
"""
SOME_ERRORS = report(errors_read=5)
"""5 errors in 10,000 requests: invalid without a budget, within one of 0.1 %."""


def run_rejudge(*arguments: str) -> str:
    out = StringIO()
    call_command("rejudge", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def two_runs(admin: Member, stock: dict[str, Any]) -> tuple[Run, Run]:
    """A run without errors and one with some."""
    good = launch_run(admin, Choice(**stock))
    finish_next()
    bad = launch_run(admin, Choice(**stock))
    finish_next(whole_run(SOME_ERRORS))
    good.refresh_from_db()
    bad.refresh_from_db()
    return good, bad


def test_judging_again_says_the_same_as_judging_at_the_end(admin: Member, two_runs: tuple[Run, Run]) -> None:
    before = [(run.validity, run.findings) for run in two_runs]
    found = rejudge(admin.team)
    assert (found.judged, found.changes) == (2, [])
    for run in two_runs:
        run.refresh_from_db()
    assert [(run.validity, run.findings) for run in two_runs] == before


def test_a_changed_threshold_moves_a_run_and_its_series(admin: Member, two_runs: tuple[Run, Run]) -> None:
    good, bad = two_runs
    assert (good.validity, bad.validity) == ("valid", "invalid")
    assert Series.objects.get().last_run == good
    change_thresholds(admin, {"error_budget_ratio": 0.001})
    said = run_rejudge("--team", "perf", "--dry-run")
    assert "perf #2: invalid -> valid. Nothing speaks against it." in said
    assert "perf: 2 runs judged, 1 would change." in said
    bad.refresh_from_db()
    assert bad.validity == "invalid"
    assert "1 changed." in run_rejudge()
    bad.refresh_from_db()
    assert bad.validity == "valid"
    assert next(f for f in bad.findings if f["check"] == "errors")["thresholds"] == {"error_budget_ratio": 0.001}
    assert Series.objects.get().last_run == bad
    change_thresholds(admin, {"error_budget_ratio": None})
    run_rejudge()
    bad.refresh_from_db()
    assert bad.validity == "invalid"
    assert Series.objects.get().last_run == good


def test_a_series_is_made_when_its_only_runs_begin_to_count(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock))
    run = finish_next(whole_run(SOME_ERRORS))
    assert not Series.objects.exists()
    change_thresholds(admin, {"error_budget_ratio": 0.001})
    rejudge(admin.team)
    made = Series.objects.get()
    assert (made.fingerprint, made.last_run, made.tool) == (run.fingerprint, run, "wrk 4.2.0")


def test_an_experiment_gets_its_verdict_again(admin: Member, stock: dict[str, Any]) -> None:
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    candidates = [Candidate(name="default", **sides), Candidate(name="many", parameters={"nofile": 99999}, **sides)]
    made = create_experiment(admin, name="files", workload=stock["workload"], candidates=candidates, repetitions=5)
    launch_experiment(admin, made)
    for number in range(10):
        run = made.runs.filter(state="queued").order_by("id").first()
        assert run is not None
        assert run.variant is not None
        candidate = run.variant.name == "many"
        throughput = (1200.0 if candidate else 1000.0) + number % 3
        finish_next(whole_run(report(throughput, **({"errors_read": 5} if candidate else {}))))
    verdict = StoredVerdict.objects.get(metric="throughput_rps")
    assert (Experiment.objects.get().state, verdict.outcome) == ("finished", "invalid")
    change_thresholds(admin, {"error_budget_ratio": 0.001})
    rejudge(admin.team)
    verdict.refresh_from_db()
    assert (verdict.outcome, verdict.numbers["n_b"]) == ("better", 5)


def test_what_keeps_no_report_stays_as_it_was_and_is_counted(admin: Member, two_runs: tuple[Run, Run]) -> None:
    import_reports(admin, kind="wrk", text=WRK)
    made_up = two_runs[0]
    made_up.events.filter(kind="load_reported").delete()
    said = run_rejudge()
    assert "perf: 1 runs judged, 0 changed." in said
    assert "1 runs left as they were (imported: the figures of its report are not stored apart)." in said
    assert "1 runs left as they were (made up or incomplete: no load report is stored)." in said


@pytest.mark.parametrize(("stored", "now"), [(True, "shown"), (False, "hidden")])
def test_latency_that_is_shown_or_hidden_from_now_on_is_a_change(
    admin: Member, stock: dict[str, Any], stored: bool, now: str
) -> None:
    launch_run(admin, Choice(**stock))
    # Answers after the timeout, within the budget: wrk leaves them out of its latency.
    load = report() if stored else report(errors_timeout=1)
    change_thresholds(admin, {"error_budget_ratio": 0.001})
    run = finish_next(whole_run(load))
    assert run.hides_latency is not stored
    Run.objects.update(hides_latency=stored)
    said = run_rejudge("--dry-run")
    assert f"perf #1: {run.validity} -> {run.validity}. Its latency is {now} now." in said
    assert "1 would change." in said
    run.refresh_from_db()
    assert run.hides_latency is stored
    run_rejudge()
    run.refresh_from_db()
    assert run.hides_latency is not stored


def test_a_team_that_does_not_exist_is_named(db: None) -> None:
    with pytest.raises(CommandError, match="no team 'nobody'"):
        run_rejudge("--team", "nobody")
