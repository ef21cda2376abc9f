"""Results that others measured, sent over the API: one run or many, with parameters, figures and series."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Alert, Artifact, AuditEntry, ConfigSnapshot, Member, Run, SampleSeries, Series, Trend
from tests.experiments.api.conftest import ApiClient
from tests.experiments.conftest import WORKLOAD

RESULT: dict[str, Any] = {
    "tool": "gatling 3.14",
    "labels": {"commit": "abc123"},
    "tags": ["nightly"],
    "parameters": {"jvm.heap": "4g", "http2": True, "pool.size": 64, "ratio": 0.5},
    "metrics": {"throughput_rps": 5120.5, "latency_p99_ms": 18.2, "requests": 307230, "errors_total": 0},
    "own_metrics": {"cart_age_ms": {"value": -3.5, "unit": "ms", "direction": "lower"}},
    "series": [{"channel": "heap.used_bytes", "unit": "bytes", "at_s": [0, 1, 2.5], "values": [1e9, 1.1e9, -1]}],
}

LSCPU = Path(__file__).parents[2] / "agents" / "cases" / "lscpu"


def result(**changes: Any) -> dict[str, Any]:
    return {**deepcopy(RESULT), **changes}


def wide(number: int = 0, points: int = 0) -> dict[str, Any]:
    """A result with 40 parameters and 30 figures."""
    own = {f"own_{at}_count": {"value": at, "unit": "count", "direction": "higher"} for at in range(26)}
    line = {"channel": "rate", "unit": "requests/s", "at_s": [*range(points)], "values": [1.5] * points}
    return result(
        parameters={f"key.{at}": number if at == 0 else at for at in range(40)},
        own_metrics=own,
        series=[line] if points else [],
    )


def test_a_result_becomes_a_run_with_its_figures_parameters_and_series(api: ApiClient) -> None:
    answer = api.post("/results", RESULT)
    made = answer.json()
    assert answer.status_code == 201, made
    assert made == {
        "number": 1,
        "url": "http://localhost/t/perf/runs/1/",
        "outcome": "succeeded",
        "validity": "suspect",
        "reasons": ["Reported by others and not verified: BenchHub saw neither the tool's output nor the hosts."],
    }
    run = api.get("/runs/1").json()
    assert (run["origin"], run["state"], run["spec"], run["tags"]) == ("imported", "finished", None, ["nightly"])
    assert run["labels"] == {"commit": "abc123"}
    assert (run["throughput_rps"], run["latency_p99_ms"]) == (5120.5, 18.2)
    assert run["metrics"] == {
        "throughput_rps": 5120.5,
        "latency_p99_ms": 18.2,
        "errors_total": 0,
        "cart_age_ms": -3.5,
    }
    values = api.get("/runs/1/config").json()["values"]
    assert {key: value for key, value in values.items() if key.startswith("parameters.")} == {
        "parameters.jvm.heap": "4g",
        "parameters.http2": "true",
        "parameters.pool.size": "64",
        "parameters.ratio": "0.5",
    }
    for asked, found in (("param=jvm.heap=4g&param=pool.size=64", [1]), ("param=jvm.heap=8g", [])):
        assert [row["number"] for row in api.get(f"/runs?{asked}").json()["items"]] == found, asked
    (line,) = api.get("/runs/1/samples").json()
    assert (line["role"], line["channel"], line["unit"]) == ("sut", "heap.used_bytes", "bytes")
    assert (line["at_s"], line["values"]) == ([0, 1, 2.5], [1e9, 1.1e9, -1])
    entry = AuditEntry.objects.get(action="run.report")
    assert (entry.subject, entry.after) == ("run #1", {"runs": 1, "tools": ["gatling 3.14"]})


def test_figures_that_make_no_sense_as_load_are_judged(api: ApiClient) -> None:
    metrics = {"requests": 100, "errors_total": 100, "throughput_rps": 10, "sut_cpu_ratio": 0.5}
    made = api.post("/results", result(metrics=metrics)).json()
    assert made["validity"] == "invalid"
    assert api.get("/runs/1").json()["errors_total"] == 100
    assert api.get("/runs/1").json()["sut_cpu_ratio"] == 0.5


def test_a_run_that_failed_needs_no_figures(api: ApiClient) -> None:
    made = api.post("/results", {"tool": "k6", "failure": "The server did not start."}).json()
    assert (made["outcome"], made["validity"]) == ("failed", "invalid")
    assert api.get("/runs/1").json()["failure"] == "The server did not start."


def test_parameters_that_differ_are_what_was_asked_for(api: ApiClient) -> None:
    api.post("/results", result())
    api.post("/results", result(parameters={**RESULT["parameters"], "jvm.heap": "8g"}))
    found = api.get("/compare?baseline=1&candidate=2").json()
    assert [(one["path"], one["values"]) for one in found["configuration"]["asked"]] == [
        ("parameters.jvm.heap", ["4g", "8g"])
    ]
    assert found["configuration"]["drift"] == []


def test_runs_with_the_same_parameters_share_one_configuration(api: ApiClient) -> None:
    api.post("/results/batch", {"results": [result(), result()]})
    api.post("/results", result())
    assert (Run.objects.count(), ConfigSnapshot.objects.count()) == (3, 1)


def test_runs_of_one_history_are_points_of_one_series(api: ApiClient) -> None:
    assert api.put("/workloads/page", WORKLOAD).status_code == 201
    days = [f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3)]
    api.post("/results/batch", {"results": [result(history="checkout", measured_at=day) for day in days[:2]]})
    api.post("/results", result(history="checkout", measured_at=days[2]))
    api.post("/results", result(workload="page"))
    api.post("/results", result())
    of_history, of_workload = Series.objects.order_by("pk")
    assert (of_history.tool, of_workload.workload) == ("gatling 3.14 (reported)", "page v1")
    points = Trend.objects.get(series=of_history, metric="throughput_rps").points
    assert points["number"].tolist() == [1, 2, 3]
    assert Run.objects.get(number=5).fingerprint == ""
    assert not Alert.objects.exists()


def test_a_benchmark_of_nothing_but_own_figures_has_a_history_with_alerts(api: ApiClient) -> None:
    def night(day: int, checkout_ms: float) -> dict[str, Any]:
        own = {
            "checkout_ms": {"value": checkout_ms + day % 3 / 50, "unit": "ms", "direction": "lower"},
            "drift_ms": {"value": -1 - day, "unit": "ms", "direction": "lower"},
        }
        return {"tool": "shop 1", "history": "shop", "measured_at": f"2026-10-{day:02}T00:00:00Z", "own_metrics": own}

    results = [night(day, 20 if day < 12 else 26) for day in range(1, 23)]
    assert {run["validity"] for run in api.post("/results/batch", {"results": results}).json()["runs"]} == {"suspect"}
    (alert,) = api.get("/alerts?metric=checkout_ms").json()["items"]
    assert (alert["label"], alert["unit"], alert["worse"], alert["run_after"]) == ("checkout_ms", "ms", True, 12)
    history = api.get(f"/series/{alert['series']}?metric=drift_ms").json()
    assert (history["unit"], history["direction"], len(history["points"])) == ("ms", "lower", 22)
    rows = {row["metric"]: row for row in api.get("/compare?baseline=1&candidate=22").json()["metrics"]}
    assert [rows["checkout_ms"][name] for name in ("unit", "direction", "values")] == ["ms", "lower", [20.02, 26.02]]
    assert rows["drift_ms"]["changes_pct"] == [None, None]
    assert [one["name"] for one in api.get("/runs/1/metrics").json()] == ["checkout_ms", "drift_ms"]
    own = {one["name"]: one["followed"] for one in api.get("/metrics").json() if one["own"]}
    assert own == {"checkout_ms": True, "drift_ms": True}
    changed = api.send("PATCH", "/metrics/drift_ms", {"followed": False}).json()
    assert (changed["name"], changed["unit"], changed["followed"]) == ("drift_ms", "ms", False)
    assert api.send("PATCH", "/metrics/throughput_rps", {"followed": False}).status_code == 404


def test_each_machine_of_results_has_a_history_of_its_own(api: ApiClient) -> None:
    intel, arm = ((LSCPU / f"seed-{name}.txt").read_text() for name in ("x86", "arm64"))
    told = [result(history="checkout", machine=text) for text in (intel, arm, intel)]
    made = api.post("/results/batch", {"results": [*told, result(history="checkout")]})
    assert made.status_code == 201, made.content
    assert api.post("/results", result(history="checkout", machine=arm)).status_code == 201
    series = [one.fingerprint for one in Series.objects.order_by("pk")]
    assert [series.index(run.fingerprint) for run in Run.objects.order_by("number")] == [0, 1, 0, 2, 1]
    profiles = {one["digest"]: one["facts"]["cpu.architecture"] for one in api.get("/profiles").json()}
    runs = [api.get(f"/runs/{number}").json() for number in range(1, 6)]
    found = [profiles.get(run["sut_profile"]) for run in runs]
    assert (found, len(profiles)) == (["x86_64", "aarch64", "x86_64", None, "aarch64"], 2)
    assert runs[0]["metrics"]["throughput_per_core_rps"] == 5120.5 / 8
    assert "sut_cpus" not in runs[3]["metrics"]
    compared = api.get("/compare?baseline=1&candidate=2").json()
    assert [one["what"] for one in compared["confounders"]] == ["SUT hardware"]
    cpus = {"throughput_rps": 100, "sut_cpu_ratio": 5e-324, "throughput_per_core_rps": 7}
    number = api.post("/results", result(metrics=cpus, machine=intel, labels={"cpus": "2"})).json()["number"]
    metrics = api.get(f"/runs/{number}").json()["metrics"]
    assert (metrics["sut_cpus"], metrics["throughput_per_core_rps"]) == (2, 7)
    assert "requests_per_cpu_s" not in metrics


def test_a_batch_is_stored_whole_or_not_at_all(api: ApiClient) -> None:
    answer = api.post("/results/batch", {"results": [wide(number) for number in range(100)]})
    assert answer.status_code == 201
    assert [run["number"] for run in answer.json()["runs"]] == [*range(1, 101)]
    broken = [wide(1), wide(2), result(metrics={"speed": 1})]
    refused = api.post("/results/batch", {"results": broken})
    assert (refused.status_code, refused.json()["field"]) == (422, "results.2.metrics.speed")
    assert api.post("/results/batch", {"results": []}).json()["field"] == "results"
    assert api.post("/results/batch", {"results": [wide()] * 101}).json()["field"] == "results"
    assert Run.objects.count() == 100
    assert api.post("/results", wide()).json()["number"] == 101


def test_the_statements_of_a_batch_do_not_depend_on_its_size(api: ApiClient) -> None:
    api.post("/results", wide())
    counts = {}
    for size in (1, 50):
        body = {"results": [wide(size * 1000 + number, points=100) for number in range(size)]}
        with CaptureQueriesContext(connection) as captured:
            assert api.post("/results/batch", body).status_code == 201
        counts[size] = len(captured)
    assert counts[1] == counts[50] <= 18


def test_a_series_of_ten_thousand_points_comes_in_one_request(api: ApiClient) -> None:
    assert api.post("/results", wide(points=10_000)).status_code == 201
    stored = SampleSeries.objects.get()
    assert (stored.at_s, stored.values) == ([float(at) for at in range(10_000)], [1.5] * 10_000)


def test_series_can_be_added_to_a_run_later_and_sent_twice(api: ApiClient) -> None:
    api.post("/results", RESULT)
    pauses = {"channel": "gc.pause_ms", "unit": "ms", "role": "driver", "at_s": [0, 2], "values": [4, 5]}
    heap = {"channel": "heap.used_bytes", "unit": "bytes", "at_s": [0], "values": [7]}
    sent = [api.post("/results/1/series", {"series": [pauses, heap]}).json() for _ in range(2)]
    assert sent == [
        {"added": ["driver gc.pause_ms"], "replaced": ["sut heap.used_bytes"]},
        {"added": [], "replaced": ["driver gc.pause_ms", "sut heap.used_bytes"]},
    ]
    stored = {line["channel"]: line["values"] for line in api.get("/runs/1/samples").json()}
    assert stored == {"gc.pause_ms": [4, 5], "heap.used_bytes": [7]}
    assert AuditEntry.objects.filter(action="run.series", subject="run #1").count() == 2


def test_series_that_cannot_be_are_not_added(api: ApiClient, admin: Member, stock: dict[str, Any]) -> None:
    api.post("/results", RESULT)
    torn = {"series": [{"channel": "a", "at_s": [0, 1], "values": [1]}]}
    answer = api.post("/results/1/series", torn)
    assert (answer.status_code, answer.json()["field"]) == (422, "series.0.values")
    assert api.post("/results/7/series", torn).status_code == 404
    executed = launch_run(admin, Choice(**stock))
    whole = {"series": [{"channel": "a", "at_s": [0], "values": [1]}]}
    refused = api.post(f"/results/{executed.number}/series", whole)
    assert (refused.status_code, "BenchHub executed run #2" in refused.json()["detail"]) == (409, True)
    assert SampleSeries.objects.count() == 1


def test_the_same_key_stores_a_result_once(api: ApiClient) -> None:
    for path, body in (("/results", RESULT), ("/results/batch", {"results": [RESULT, RESULT]})):
        key = {"Idempotency-Key": path}
        first, again = (api.post(path, body, headers=key) for _ in range(2))
        assert (first.status_code, first.content) == (again.status_code, again.content) == (201, first.content)
    assert Run.objects.count() == 3


def test_the_examples_of_the_reference_can_be_sent(api: ApiClient) -> None:
    paths = api.get("/openapi.json").json()["paths"]
    for path in ("/results", "/results/batch", "/results/{number}/series"):
        said = paths[f"/api/v1{path}"]["post"]["requestBody"]["content"]["application/json"]
        assert "$ref" in said["schema"]
        assert api.post(path.format(number=1), said["example"]).status_code == 201


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"tool": ""}, "tool"),
        ({"metrics": {}, "own_metrics": {}}, "metrics"),
        ({"metrics": {"sut_cpu_ratio": 0.5}, "own_metrics": {}}, "metrics"),
        ({"metrics": {"throughput_rps": "5"}}, "metrics.throughput_rps"),
        ({"metrics": {"throughput_rps": True}}, "metrics.throughput_rps"),
        ({"metrics": {"throughput_rps": -1}}, "metrics"),
        ({"metrics": {"throughput_rps": 1e19}}, "metrics"),
        ({"metrics": {"requests": 1.5}}, "metrics"),
        ({"metrics": {"sut_cpu_ratio": -1}}, "metrics.sut_cpu_ratio"),
        ({"metrics": {"latency_p101_ms": 1}}, "metrics.latency_p101_ms"),
        ({"metrics": {f"latency_p{at / 10}_ms": 1 for at in range(1, 102)}}, "metrics"),
        ({"own_metrics": {"Age": {"value": 1, "unit": "ms", "direction": "lower"}}}, "own_metrics"),
        ({"own_metrics": {"throughput_rps": {"value": 1, "unit": "ms", "direction": "lower"}}}, "own_metrics"),
        ({"own_metrics": {"age_ms": {"value": 1, "unit": "ms"}}}, "own_metrics.age_ms.direction"),
        ({"own_metrics": {"age_ms": {"value": 1, "unit": "m\ns", "direction": "lower"}}}, "own_metrics.age_ms"),
        ({"own_metrics": {"age_ms": {"value": 1e300, "unit": "ms", "direction": "lower"}}}, "own_metrics.age_ms"),
        ({"parameters": {"": 1}}, "parameters"),
        ({"parameters": {"a": "x" * 1001}}, "parameters.a"),
        ({"parameters": {f"k{at}": at for at in range(201)}}, "parameters"),
        ({"labels": {"a b": "c"}}, "labels"),
        ({"tags": ["two words"]}, "tags"),
        ({"application": "nope"}, "application"),
        ({"machine": "a fast one"}, "machine"),
        ({"measured_at": "2026-01-01T00:00:00"}, "measured_at"),
        ({"measured_at": "0001-01-01T00:00:00+23:59"}, "measured_at"),
        ({"measured_at": "9999-12-31T23:59:59-23:59"}, "measured_at"),
        ({"failure": "It fell over."}, "metrics"),
        ({"series": [{"channel": "a", "at_s": [0, 1], "values": [1]}]}, "series.0.values"),
        ({"series": [{"channel": "a", "at_s": [1, 0], "values": [1, 1]}]}, "series.0.at_s"),
        ({"series": [{"channel": "a", "at_s": [], "values": []}]}, "series.0.at_s"),
        ({"series": [{"channel": "a", "at_s": [0], "values": [0]}] * 2}, "series.1.channel"),
        ({"series": [{"channel": "a", "at_s": [0], "values": [0], "role": "x"}]}, "series.0.role"),
        ({"number": 7}, "number"),
        ({"validity": "valid"}, "validity"),
    ],
)
def test_a_result_that_cannot_be_is_not_stored(api: ApiClient, changes: dict[str, Any], field: str) -> None:
    answer = api.post("/results", result(**changes))
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content
    assert not Run.objects.exists()
    assert not Artifact.objects.exists()


BEYOND: list[tuple[dict[str, Any], str]] = [
    ({"metrics": {"throughput_rps": 1.0, "driver_cpu_ratio": 95}}, "upper bound of 1"),
    ({"metrics": {"throughput_rps": 1.0, "sut_cpu_ratio": 1.5}}, "upper bound of 1"),
    ({"metrics": {"latency_p99_ms": -1}}, "at least 0"),
    ({"own_metrics": {"cart_latency_ms": {"value": -1, "unit": "ms", "direction": "lower"}}}, "lower bound of 0"),
    ({"own_metrics": {"proxy_cpu_ratio": {"value": 95, "unit": "ratio", "direction": "lower"}}}, "upper bound of 1"),
    (
        {"own_metrics": {"score_points": {"value": 12, "unit": "points", "direction": "higher", "high": 10}}},
        "upper bound of 10",
    ),
]


@pytest.mark.parametrize(("changes", "bound"), BEYOND)
def test_a_figure_that_cannot_be_is_refused_with_its_bound(api: ApiClient, changes: dict[str, Any], bound: str) -> None:
    answer = api.post("/results", result(**changes))
    assert answer.status_code == 422
    assert bound in answer.json()["detail"]


def test_a_declared_bound_allows_what_the_name_would_not(api: ApiClient) -> None:
    own = {"clock_latency_ms": {"value": -1, "unit": "ms", "direction": "lower", "low": -10}}
    assert api.post("/results", result(own_metrics=own)).status_code == 201


def test_the_name_of_a_figure_keeps_its_letters_in_the_answer(api: ApiClient) -> None:
    body = {"tool": "gatling 3.14", "metrics": {"throughput_rps": 10.0, "latency_p99_ms": -1.0}}
    answer = api.post("/results", body)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("latency_p99_ms is -1")
