"""The one factory of queued runs: nobody else makes them, and what it makes again is the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.factory import CARRIED
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.models import Experiment, Member, Recipe, Run
from experiments.registry.documents.versions import save_version
from experiments.registry.experiments.rules import Rules
from experiments.running.ending.conclusion import give_up
from experiments.running.queue.dispatch import claim_next
from tests.experiments.conftest import RECIPE
from tests.experiments.finished import finish_next, report, whole_run

ROOT = Path(__file__).parents[3]
FACTORY = "experiments/asking/launching/factory.py"
OF_THE_WAIT = {"id", "number", "queued_at", "retry_of_id", "retries_left"}
WHAT_HAPPENED = {
    *("fingerprint", "sut_profile_id", "config_id", "state", "outcome", "validity", "findings", "hides_latency"),
    *("restore", "failure", "failure_hint", "cause", "owner", "fence", "lease_until", "attempts", "last_seq"),
    *("cancel_requested_at", "started_at", "measured_at", "finished_at", "metrics", "throughput_rps"),
    *("latency_p50_ms", "latency_p99_ms", "errors_total", "sut_cpu_ratio", "driver_cpu_ratio"),
    *("archived", "trashed_at", "doubted_at"),
}


def runs_made_in(path: Path) -> Iterator[ast.Call]:
    """Calls that may make a run: of the model, or of a method of its manager that stores a new row."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("Run", "Run.objects.create", "Run.objects.get_or_create", "Run.objects.update_or_create"):
                yield node


def test_a_queued_run_is_made_nowhere_else() -> None:
    """Whoever else makes a run says that it is finished: it was measured elsewhere, or made up."""
    found = []
    for package in ("experiments", "frontend", "benchhub", "lab"):
        for path in (ROOT / package).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            for call in runs_made_in(path):
                states = [ast.unparse(word.value) for word in call.keywords if word.arg == "state"]
                if name != FACTORY and states != ["Run.State.FINISHED"]:
                    found.append(f"{name}:{call.lineno}")
    assert not found
    assert len(list(runs_made_in(ROOT / FACTORY))) == 2  # of a setup, and of another run


def test_every_column_is_carried_to_the_same_run_once_more_or_says_what_happened_to_one() -> None:
    columns = {column.attname for column in Run._meta.concrete_fields}
    assert columns == {*CARRIED, *OF_THE_WAIT, *WHAT_HAPPENED}
    assert len(columns) == len(CARRIED) + len(OF_THE_WAIT) + len(WHAT_HAPPENED)


def test_a_run_that_is_tried_again_is_the_same(admin: Member, stock: dict[str, Any]) -> None:
    texts: dict[str, Any] = {"labels": {"commit": "abc"}, "tags": ["night"], "notes": "n"}
    run = launch_run(admin, Choice(**stock, parameters={"nofile": 4096}), priority=1, retries=2, **texts)
    Run.objects.update(notes_by=admin.user, notes_at=timezone.now(), is_demo=True)
    claimed = claim_next("worker")
    assert claimed is not None
    give_up(run.pk, claimed.fence, "BenchHub made a mistake.", "")
    run.refresh_from_db()
    again = run.retries.get()
    assert values(again) == values(run)
    assert (again.state, again.number, again.retries_left) == ("queued", 2, 1)
    in_an_experiment = {"experiment_id", "variant_id", "block"}
    assert {name for name in CARRIED if not getattr(run, name)} == in_an_experiment | {"profiled"}


@pytest.fixture
def experiment(admin: Member, stock: dict[str, Any]) -> Experiment:
    parts = {name: stock[name] for name in ("application", "sut", "drivers")}
    other = save_version(admin, Recipe, "other limits", RECIPE)
    candidates = [Candidate("default", recipe=stock["recipe"], **parts), Candidate("other", recipe=other, **parts)]
    rules = Rules(stop_rule=Experiment.StopRule.UNTIL_CLEAR)
    made = create_experiment(
        admin, name="q", workload=stock["workload"], candidates=candidates, rules=rules, labels={"commit": "abc"}
    )
    launch_experiment(admin, made, priority=1, retries=3)
    return made


def test_a_repetition_that_the_stop_rule_adds_is_the_same(experiment: Experiment) -> None:
    launched = set(experiment.runs.values_list("pk", flat=True))
    for place in range(len(launched)):
        finish_next(whole_run(report(1000.0 + 37 * (place % 5))))
    added = list(experiment.runs.exclude(pk__in=launched))
    assert added
    for run in added:
        first = experiment.runs.filter(variant=run.variant_id).order_by("pk")[0]
        assert values(run) | {"block": None} == values(first) | {"block": None}
        assert (run.state, run.retries_left) == ("queued", 3)


def values(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in CARRIED}
