"""Figures of a team's own benchmarks: they decide experiments, gate, are compared and followed like the known ones."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.judging.alerts.following import follow_metric
from experiments.judging.alerts.wording import sentence, title
from experiments.judging.comparing.comparison import comparable_runs, compare
from experiments.judging.comparing.history import thinned_history
from experiments.judging.gate.decision import experiment_gate, run_gate
from experiments.judging.gate.rules import GateRules
from experiments.models import Alert, AuditEntry, Experiment, Member, Metric, Run, Trend, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.experiments.rules import Rules
from experiments.registry.metrics.own_metrics import learn, metrics_of, standing_metrics
from experiments.registry.metrics.vocabulary import METRICS, label_of, own_metric
from experiments.telling.reports.csv_text import report_csv
from experiments.telling.reports.markdown import report_markdown
from experiments.telling.reports.report import report_of
from tests.experiments.conftest import WORKLOAD
from tests.experiments.finished import finish_next, report, whole_run
from tests.experiments.trend_runs import nights, runs_of

pytestmark = pytest.mark.django_db


def own(value: float, name: str = "cart_age_ms", unit: str = "ms", direction: str = "lower") -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "direction": direction}


def played(admin: Member, stock: dict[str, Any], *by_variant: float, rules: Rules | None = None) -> Experiment:
    """An experiment that the age of the cart decides, all of its runs finished."""
    sides = {key: stock[key] for key in stock if key != "workload"}
    experiment = create_experiment(
        admin,
        name="carts",
        workload=stock["workload"],
        candidates=[Candidate(f"v{index}", **sides) for index in range(len(by_variant))],
        primary_metric="cart_age_ms",
        rules=rules,
    )
    launch_experiment(admin, experiment)
    while following := experiment.runs.filter(state="queued").order_by("id").first():
        assert following.variant is not None
        assert following.block is not None
        place = following.variant.position
        wobble = 1 + 0.002 * ((7 * following.block + place) % 5 - 2)
        hits = own(90.0, "hits_count", "count", "higher")
        finish_next(whole_run(report(1000 * wobble, own_metrics=[own(by_variant[place] * wobble), hits])))
    experiment.refresh_from_db()
    return experiment


@pytest.fixture
def declared(admin: Member) -> Member:
    """A member of a team that knows the age of its carts, and how many were hit."""
    learn(admin.team, [own_metric("cart_age_ms", "ms", "lower"), own_metric("hits_count", "count", "higher")])
    return admin


def test_an_own_metric_decides_an_experiment_and_its_gate_in_its_own_direction(
    declared: Member, stock: dict[str, Any]
) -> None:
    experiment = played(declared, stock, 10.0, 8.0, rules=Rules(gate_metrics=("hits_count",)))
    verdict = experiment.verdicts.get(metric="cart_age_ms")
    assert (verdict.outcome, round(verdict.numbers["estimate_pct"])) == ("better", -20)
    assert verdict.numbers["decides"] is True
    assert "cart_age_ms" in verdict.sentence
    assert experiment.verdicts.get(metric="hits_count").outcome == "no_practical_difference"
    gate = experiment_gate(experiment)
    (number,) = (one for one in gate.numbers if one.metric == "cart_age_ms")
    assert (gate.outcome, number.label, number.unit, number.decides) == ("pass", "cart_age_ms", "ms", True)
    worse = played(declared, stock, 10.0, 12.0)
    told = report_of(worse, base_url="http://lab")
    assert (told.primary.name, told.changes[0].outcome) == ("cart_age_ms", "worse")
    assert "cart_age_ms" in report_markdown(told, url="http://lab")
    assert "hits_count" in report_csv(told)
    assert experiment_gate(worse).outcome == "fail"
    assert experiment_gate(worse, GateRules(metrics=("hits_count",))).outcome == "pass"


def test_a_gate_against_an_earlier_run_and_the_gate_of_a_run_know_own_metrics(
    declared: Member, stock: dict[str, Any]
) -> None:
    experiment = played(declared, stock, 10.0)
    run = experiment.runs.order_by("number")[0]
    assert {"cart_age_ms", "throughput_rps"} <= {number.metric for number in run_gate(run).numbers}
    said = experiment_gate(experiment, GateRules(metrics=("cart_age_ms",), baseline=f"run:{run.number}"))
    assert [number.metric for number in said.numbers] == ["cart_age_ms"]


def test_a_figure_of_zero_or_below_is_shown_but_is_no_repetition(declared: Member, stock: dict[str, Any]) -> None:
    experiment = played(declared, stock, -2.0, 0.0)
    assert experiment.verdicts.get(metric="cart_age_ms").outcome == "invalid"
    runs = comparable_runs(declared.team, [run.number for run in experiment.runs.order_by("variant", "number")][::5])
    (row,) = (row for row in compare(runs).rows if row.metric.name == "cart_age_ms")
    assert row.changes_pct == (None, None)
    assert row.values[1] == 0.0


def test_what_a_workload_names_is_known_before_its_first_run(admin: Member) -> None:
    driver = {
        "kind": "command",
        "argv": ["./bench"],
        "figures": {
            "throughput_rps": {"pattern": "rate ([0-9.]+)"},
            "score_points": {"json_path": "score", "unit": "points", "direction": "higher"},
        },
    }
    save_version(admin, Workload, "own", {**WORKLOAD, "driver": driver})
    found = metrics_of(admin.team_id)
    assert list(found) == [*METRICS, "score_points"]
    assert (found["score_points"].unit, found["score_points"].direction) == ("points", "higher")


PGBENCH = {"kind": "pgbench", "clients": 4}


@pytest.mark.parametrize(
    ("driver", "metric"),
    [(PGBENCH, "transactions_per_s"), ({"kind": "wrk", "connections": 2, "threads": 1}, "throughput_rps")],
)
def test_an_experiment_is_judged_by_what_its_workload_measures_unless_somebody_says_otherwise(
    admin: Member, stock: dict[str, Any], driver: dict[str, Any], metric: str
) -> None:
    workload = save_version(admin, Workload, "load", {**WORKLOAD, "driver": driver})
    sides = {key: stock[key] for key in stock if key != "workload"}
    candidates = [Candidate(name, **sides) for name in ("before", "after")]
    by_itself = create_experiment(admin, name="a", workload=workload, candidates=candidates)
    said = create_experiment(admin, name="b", workload=workload, candidates=candidates, primary_metric="latency_p99_ms")
    assert (by_itself.primary_metric, said.primary_metric) == (metric, "latency_p99_ms")


def test_a_load_tools_rate_has_its_unit_and_is_watched_from_the_moment_that_its_workload_is_saved(
    admin: Member,
) -> None:
    save_version(admin, Workload, "tables", {**WORKLOAD, "driver": PGBENCH})
    stored = Metric.objects.get(name="transactions_per_s")
    assert (stored.unit, stored.direction, stored.followed) == ("transactions/s", Metric.Direction.HIGHER, True)
    found = metrics_of(admin.team_id)["transactions_per_s"]
    assert (found.label, found.higher_is_better) == ("Transactions", True)


def test_what_stands_for_a_run_without_requests_per_second_is_what_is_followed(admin: Member) -> None:
    learn(admin.team, [own_metric("transactions_per_s", "transactions/s", "higher")])
    learn(admin.team, [own_metric(f"lag_{at}_ms", "ms", "lower") for at in range(5)])

    def standing(*names: str) -> list[str]:
        return [metric.name for metric in standing_metrics(admin.team_id, names)]

    assert standing("transactions_per_s", "lag_1_ms", "latency_mean_ms") == ["transactions_per_s"]
    assert standing("lag_1_ms", "lag_2_ms") == ["lag_1_ms", "lag_2_ms"]
    assert standing("throughput_rps", "transactions_per_s") == []
    assert standing("latency_mean_ms") == []


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("get.throughput_rps", "Throughput of get"),
        ("read.latency_p99.9_ms", "Latency, p99.9 of read"),
        ("iops", "I/O requests"),
        ("latency_p99.9_ms", "Latency, p99.9"),
        ("gc_pause_ms", "gc_pause_ms"),
        ("shop.cart_age_ms", "shop.cart_age_ms"),
    ],
)
def test_a_metric_has_a_name_for_people(name: str, label: str) -> None:
    assert own_metric(name, "ms", "lower").label == label_of(name) == label


def test_the_declaration_that_came_last_counts_and_the_audit_has_both(admin: Member) -> None:
    learn(admin.team, [own_metric("drift", "ms", "lower")])
    learn(admin.team, [own_metric("drift", "ms", "lower"), own_metric("throughput_rps", "x", "lower")])
    learn(admin.team, [own_metric("drift", "s", "higher")])
    metric = Metric.objects.get()
    assert (metric.name, metric.unit, metric.direction, metric.followed) == ("drift", "s", "higher", True)
    entry = AuditEntry.objects.get(action="metric.declare")
    assert (entry.before, entry.after) == (
        {"unit": "ms", "direction": "lower"},
        {"unit": "s", "direction": "higher"},
    )


def test_another_teams_metrics_are_not_known(declared: Member, other_admin: Member, stock: dict[str, Any]) -> None:
    assert list(metrics_of(other_admin.team_id)) == list(METRICS)
    for name in ("cart", "a\0b", "x" * 500):
        with pytest.raises(RequestError, match="There is no metric") as refused:
            thinned_history(declared.team, "f" * 64, name)
        assert refused.value.field == "metric"
    with pytest.raises(NotFound):
        follow_metric(other_admin, "cart_age_ms", followed=True)


def test_a_followed_metric_has_change_points_that_know_which_way_is_worse(
    declared: Member, stock: dict[str, Any]
) -> None:
    add_run = runs_of(declared, stock)

    def night(day: float, age_ms: float) -> Run:
        return add_run(day, 1000.0, metrics={"cart_age_ms": age_ms + day % 3 / 100, "errors_total": 0.0})

    nights(night, [20.0] * 10 + [30.0] * 8)
    alert = Alert.objects.get()
    assert (alert.trend.metric, alert.worse, alert.state) == ("cart_age_ms", True, "confirmed")
    assert title(alert).startswith("cart_age_ms rose by 50")
    assert "to 30.01 ms" in sentence(alert)
    points = thinned_history(declared.team, "f" * 64, "cart_age_ms").points
    assert len(points) == 18


def test_only_some_of_many_own_metrics_are_followed_until_somebody_says_so(
    admin: Member, stock: dict[str, Any]
) -> None:
    learn(admin.team, [own_metric(f"own_{at}_ms", "ms", "lower") for at in range(5)])
    add_run = runs_of(admin, stock)
    nights(
        lambda day, age_ms: add_run(day, 1000.0, metrics={"own_3_ms": age_ms + day % 3 / 100}), [20.0] * 10 + [9.0] * 8
    )
    assert not Trend.objects.exists()
    follow_metric(admin, "own_3_ms", followed=True)
    alert = Alert.objects.get()
    assert (alert.trend.metric, alert.worse, alert.told_at is None) == ("own_3_ms", False, False)
    follow_metric(admin, "own_3_ms", followed=False)
    add_run(18.0, 1000.0, metrics={"own_3_ms": 9.0})
    assert Trend.objects.get().length == 18
    assert [entry.action for entry in AuditEntry.objects.filter(subject="own_3_ms").order_by("pk")] == [
        "metric.follow",
        "metric.unfollow",
    ]
