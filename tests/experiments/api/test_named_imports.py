"""Files of benchmarks: each result is a run, and a series of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.base.redaction import without_secrets
from agents.readers import RESULT_READERS
from experiments.asking.intake.named_results import MAX_RUNS
from experiments.models import Artifact, Metric, Run, Series
from tests.agents.recorded import Case, cases
from tests.experiments.api.conftest import ApiClient

RESULTS = [case for kind in RESULT_READERS for case in cases(kind)]
NONE = {
    "bmf/not-bmf-bare-number": "text",
    "criterion/fields-split-16.benchmark": "text",
    "jmh/no-match": "text",
    "locust/people_failures": "text",
    "locust/people_stats_history": "text",
}
"""Files in which no figure stands for a result -> the field that is refused."""
CASES = {case.name: case for case in RESULTS}


def body_of(case: Case, **more: Any) -> dict[str, Any]:
    name = f"{case.name.rpartition('/')[2]}.json"
    return {"kind": case.name.partition("/")[0], "text": case.text, "file_name": name, **more}


@pytest.mark.parametrize("case", RESULTS, ids=lambda case: case.name)
def test_a_file_of_benchmarks_becomes_runs(api: ApiClient, case: Case) -> None:
    answer = api.post("/imports", body_of(case, directions={"*": "lower"}))
    if case.name in NONE:
        assert (answer.status_code, answer.json()["field"]) == (422, NONE[case.name]), answer.content
        assert not Run.objects.exists()
        return
    assert answer.status_code == 201, answer.content
    runs = list(Run.objects.order_by("number"))
    assert [run.number for run in runs] == answer.json()["numbers"]
    assert Artifact.objects.get().content == without_secrets(case.text).encode()
    assert len({run.labels["import"] for run in runs}) == 1
    for run in runs:
        assert run.failure if run.outcome == "failed" else run.metrics
        assert run.validity in {"suspect", "invalid"}, "nobody saw the hosts"
        assert not any("no throughput" in one["sentence"] for one in run.findings)
    if case.about.get("usable") is False:
        assert {run.validity for run in runs} == {"invalid"}


def test_each_benchmark_has_a_series_of_its_own_that_further_imports_continue(api: ApiClient) -> None:
    case = CASES["jmh/throughput-params-gc"]
    for day in (1, 2):
        answer = api.post("/imports", body_of(case, measured_at=f"2026-01-0{day}T00:00:00Z"))
        assert answer.status_code == 201, answer.content
    results = {json.dumps([run.labels["benchmark"], run.parameters]) for run in Run.objects.all()}
    assert Series.objects.count() == len(results) > 1
    series = api.get("/series").json()
    assert len({one["workload"] for one in series}) == len(results)
    assert {one["tool"] for one in series} == {"jmh (imported)"}
    for one in series:
        points = api.get(f"/series/{one['fingerprint']}?metric=ops_per_s").json()["points"]
        assert [point["at"][:10] for point in points] == ["2026-01-01", "2026-01-02"]


@pytest.mark.parametrize(
    ("name", "repetitions"),
    [
        ("hyperfine/three-commands", "run"),
        ("benchmarkdotnet/full-two-launches", "launch"),
        ("renaissance/two-processes", "process"),
        ("pytest-benchmark/two-tests", ""),
        ("go-bench/benchmem-count5", ""),
        ("google-benchmark/repetitions-aggregates", ""),
        ("criterion/cargo-criterion-fields", ""),
    ],
)
def test_what_began_anew_is_a_repetition_and_what_shares_a_process_is_none(
    api: ApiClient, name: str, repetitions: str
) -> None:
    assert api.post("/imports", body_of(CASES[name])).status_code == 201
    runs = list(Run.objects.order_by("number"))
    said: Any = CASES[name].expected["results"]
    if not repetitions:
        assert len(runs) == len(said)
        assert not any("repetition" in run.labels for run in runs)
        return
    assert len(runs) == sum(one["repetitions"]["count"] for one in said)
    first = [run for run in runs if run.labels["benchmark"] == runs[0].labels["benchmark"]]
    first = [run for run in first if run.parameters == runs[0].parameters]
    count = said[0]["repetitions"]["count"]
    assert [run.labels["repetition"] for run in first] == [f"{one} of {count}" for one in range(1, count + 1)]
    (headline,) = {name for run in first for name in run.metrics if name.startswith("time_")}
    mean = sum(run.metrics[headline] for run in first) / count
    assert mean == pytest.approx(said[0]["figures"][headline], rel=1e-6)
    assert Series.objects.count() == len(said)


def test_figures_have_the_units_and_directions_of_their_tool(api: ApiClient) -> None:
    assert api.post("/imports", body_of(CASES["fio/randread-json"])).status_code == 201
    iops = Metric.objects.get(name="iops")
    assert (iops.unit, iops.direction, iops.followed) == ("IOPS", Metric.Direction.HIGHER, True)
    run = Run.objects.get()
    assert run.throughput_rps is None, "nobody says requests/s of a disk"
    said: Any = CASES["fio/randread-json"].expected["results"]
    assert run.metrics["iops"] == pytest.approx(said[0]["figures"]["iops"])
    assert run.parameters["bs"] == "4k"


def test_latency_from_when_a_request_was_due_is_told_from_the_other(api: ApiClient) -> None:
    assert api.post("/imports", body_of(CASES["ycsb/run-target-intended"])).status_code == 201
    found = {one["workload"]: one["latency_basis"] for one in api.get("/series").json()}
    assert (found["READ"], found["Intended-READ"]) == ("service_time", "response_time")


def test_what_is_better_is_asked_where_the_file_does_not_say_it(api: ApiClient) -> None:
    body = body_of(CASES["bmf/two-measures"])
    asked = api.post("/imports", body)
    assert (asked.status_code, asked.json()["field"]) == (422, "directions")
    assert "latency, throughput" in asked.json()["detail"]
    given = {"latency": "lower", "throughput": "higher"}
    assert api.post("/imports", body | {"directions": given}).status_code == 201
    assert dict(Metric.objects.values_list("name", "direction")) == given
    assert api.post("/imports", body | {"directions": {"latency": "less"}}).status_code == 422


def test_measures_of_one_name_and_several_units_are_metrics_of_their_own(api: ApiClient) -> None:
    for name in ("Bigger", "Smaller"):
        case = CASES[f"github-action-benchmark/custom{name}IsBetter"]
        assert api.post("/imports", body_of(case)).status_code == 201
    found = {
        name: (unit, direction) for name, unit, direction in Metric.objects.values_list("name", "unit", "direction")
    }
    assert found == {
        "highest_req_s": ("req/s", "higher"),
        "highest_percent": ("Percent", "higher"),
        "lowest_ms": ("ms", "lower"),
        "lowest_megabytes": ("Megabytes", "lower"),
    }


@pytest.mark.parametrize("name", ["jmh/throughput-params-gc", "fio/randread-json", "vegeta/steady-buckets"])
def test_a_text_is_known_by_its_content(api: ApiClient, name: str) -> None:
    case = next(one for one in cases(name.partition("/")[0]) if one.name == name)
    answer = api.post("/imports", {"kind": "auto", "text": case.text})
    assert answer.status_code == 201, answer.content


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"kind": "auto", "text": "hello"}, "kind", "jmh-json"),
        ({"kind": "nope", "text": "x"}, "kind", "benchmarkdotnet"),
        ({"kind": "jmh", "text": "hello"}, "text", ""),
        ({"kind": "jmh", "text": CASES["jmh/throughput-params-gc"].text, "command": "java -jar x"}, "command", "empty"),
    ],
)
def test_what_no_reader_knows_is_refused_with_the_forms_that_there_are(
    api: ApiClient, body: dict[str, Any], field: str, said: str
) -> None:
    answer = api.post("/imports", body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content
    assert said in answer.json()["detail"]
    assert not Run.objects.exists()


def test_a_file_of_too_many_results_is_refused_before_anything_is_stored(api: ApiClient) -> None:
    one = {"name": "a", "unit": "ms", "value": 1.0}
    many = json.dumps([one | {"name": f"a{number}"} for number in range(MAX_RUNS + 1)])
    answer = api.post("/imports", {"kind": "github-action-benchmark", "text": many, "directions": {"*": "lower"}})
    assert (answer.status_code, answer.json()["field"]) == (422, "text")
    assert not Run.objects.exists()
