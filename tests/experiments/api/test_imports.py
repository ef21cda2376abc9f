"""Reports of tools that ran elsewhere, from every case that the parsers have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.drivers.reading import REPORTING
from experiments.models import Artifact, Run, Series
from tests.experiments.api.conftest import ApiClient
from tests.experiments.conftest import WORKLOAD

CASES = Path(__file__).parents[2] / "agents" / "cases"
REPORTS = sorted(path for kind in ("wrk", "wrk2") for path in (CASES / kind).glob("*.expected.json"))
ONE_OF_EACH = [
    CASES / f"{name}.expected.json"
    for name in (
        "ab/mix-keep-alive",
        "ab/refused",
        "autocannon/basic",
        "command/figures",
        "jmeter/dashboard-statistics",
        "jmeter/people",
        "jmeter/redirect-xml",
        "jmeter/virtual-threads-summary",
        "h2load/http2",
        "hey/mix",
        "hyperfoil/run",
        "hyperfoil/wrk2-steady",
        "k6/basic",
        "k6/basic-text",
        "k6/mix",
        "oha/basic-text",
        "oha/offered-rate-tls-http2",
        "siege/text",
        "siege/all-404",
        "vegeta/steady-buckets",
        "vegeta/all-503",
    )
]
CHOSEN = {path.parent.name for path in (*REPORTS, *ONE_OF_EACH)}
ONE_OF_EACH += [
    path for kind in REPORTING if kind not in CHOSEN for path in sorted((CASES / kind).glob("*.expected.json"))[:1]
]


def source(expected: Path) -> Path:
    """The tool's output beside an expectation."""
    stem = expected.name.removesuffix(".expected.json")
    return next(path for path in expected.parent.glob(f"{stem}.*") if path != expected)


@pytest.mark.parametrize(
    "path", [*REPORTS, *ONE_OF_EACH], ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}"
)
def test_a_report_becomes_a_run(api: ApiClient, path: Path) -> None:
    case = json.loads(path.read_text())
    text = source(path).read_text()
    body = {"kind": path.parent.name, "text": text, "command": case.get("command", ""), "labels": {"case": "x"}}
    answer = api.post("/imports", body)
    run = answer.json()
    assert answer.status_code == 201, run
    assert (run["origin"], run["state"], run["labels"], run["spec"]) == ("imported", "finished", {"case": "x"}, None)
    expected = case["expected"]
    if run["outcome"] == "failed":
        assert run["failure"]
        return
    if expected.get("throughput_rps"):
        assert run["throughput_rps"] == pytest.approx(expected["throughput_rps"], rel=1e-6)
    assert run["validity"] in {"suspect", "invalid"}  # nobody saw the hosts: never valid
    if case.get("usable") is False:
        assert run["validity"] == "invalid"
        assert [finding["sentence"] for finding in run["findings"] if finding["level"] == "invalid"]
    assert Artifact.objects.get().content == text.encode()


def test_imports_of_one_load_form_a_series_and_can_be_compared(api: ApiClient) -> None:
    path = next(path for path in REPORTS if path.name.startswith("basic"))
    assert api.put("/workloads/page", WORKLOAD).status_code == 201
    body: dict[str, Any] = {"kind": "wrk", "text": source(path).read_text(), "workload": "page"}
    for day in (1, 2):
        made = api.post("/imports", {**body, "measured_at": f"2026-01-0{day}T00:00:00Z"})
        assert made.status_code == 201
    series = api.get("/series").json()
    assert (len(series), series[0]["last_run"]) == (1, 2)
    history = api.get(f"/series/{series[0]['fingerprint']}").json()
    assert [point["at"][:10] for point in history["points"]] == ["2026-01-01", "2026-01-02"]
    compared = api.get("/compare?baseline=1&candidate=2").json()
    assert compared["comparable"] is True
    assert compared["metrics"][0]["changes_pct"] == [None, 0.0]
    assert Series.objects.count() == 1
    assert api.get("/runs/1/verdict").json()["outcome"] == "inconclusive"
    artifact = api.get("/runs/1/artifacts").json()[0]
    fetched = api.get(artifact["url"].partition("/api/v1")[2])
    assert fetched.content.decode() == body["text"]
    assert fetched["Content-Disposition"].startswith("attachment")
    assert api.post("/runs/1/rerun").status_code == 409


def test_each_machine_that_is_described_has_a_history_of_its_own(api: ApiClient) -> None:
    report = next(path for path in REPORTS if path.name.startswith("basic"))
    body: dict[str, Any] = {"kind": "wrk", "text": source(report).read_text()}
    arm, intel = ((CASES / f"lscpu/seed-{name}.txt").read_text() for name in ("arm64", "x86"))
    kernel = "Linux b 6.1.0-18-arm64 #1 SMP Debian 6.1.76-1 (2024-02-01) aarch64 GNU/Linux\n"
    for machine in (intel, arm + kernel, arm + kernel):
        answer = api.post("/imports", body | {"machine": machine})
        assert answer.status_code == 201, answer.content
    first, second, third = Run.objects.order_by("number")
    assert first.fingerprint != second.fingerprint == third.fingerprint
    assert first.throughput_rps is not None
    assert first.metrics["throughput_per_core_rps"] == first.throughput_rps / 8
    found = {one["facts"]["cpu.architecture"]: one["facts"] for one in api.get("/profiles").json()}
    assert found.keys() == {"x86_64", "aarch64"}
    assert found["aarch64"]["kernel.release"] == "6.1.0-18-arm64"
    compared = api.get("/compare?baseline=1&candidate=2").json()
    assert [one["what"] for one in compared["confounders"]] == ["SUT hardware"]


def test_the_label_cpus_comes_before_those_of_the_machine(api: ApiClient) -> None:
    report = next(path for path in REPORTS if path.name.startswith("basic"))
    body = {"kind": "wrk", "text": source(report).read_text(), "labels": {"cpus": "2"}}
    assert api.post("/imports", body | {"machine": (CASES / "lscpu/seed-x86.txt").read_text()}).status_code == 201
    assert Run.objects.get().metrics["sut_cpus"] == 2


@pytest.mark.parametrize(
    "body, field",
    [
        ({"kind": "wrk", "text": (CASES / "wrk/basic.txt").read_text(), "machine": "a fast one"}, "machine"),
        ({"kind": "nope", "text": "x"}, "kind"),
        ({"kind": "wrk", "text": ""}, "text"),
        ({"kind": "wrk", "text": "Running 10s test"}, "text"),
        ({"kind": "wrk", "text": "x" * 5_000_001}, "text"),
        ({"kind": "wrk", "text": "x", "command": "wrk '"}, ""),
        ({"kind": "wrk", "text": "x", "measured_at": "2026-01-01T00:00:00"}, "measured_at"),
        ({"kind": "wrk", "text": "x", "file": "/etc/passwd"}, "file"),
    ],
)
def test_a_report_that_cannot_be_read_is_not_stored(api: ApiClient, body: Any, field: str) -> None:
    answer = api.post("/imports", body)
    assert answer.status_code == 422
    assert not field or answer.json()["field"] == field, answer.content
    assert not Run.objects.exists()


HEAD = "timeStamp,elapsed,label,responseCode,responseMessage,success,bytes,sentBytes,allThreads\n"
T0 = 1_760_000_000_000


def jtl(begin_ms: int, seconds: int, pause: range = range(0)) -> str:
    """40 requests in each second, but for those of the pause."""
    return "".join(
        f"{begin_ms + i * 25},5,GET,200,OK,true,100,50,4\n" for i in range(seconds * 40) if i // 40 not in pause
    )


def test_runs_that_were_appended_to_one_file_become_runs_when_asked(api: ApiClient) -> None:
    text = HEAD + jtl(T0, 40) + jtl(T0 + 240_000, 40)
    one = api.post("/imports", {"kind": "jmeter", "text": text}).json()
    assert (one["validity"], len(one["numbers"])) == ("invalid", 1)
    assert "import it split" in " ".join(finding["sentence"] for finding in one["findings"])
    answer = api.post("/imports", {"kind": "jmeter", "text": text, "split": True}).json()
    assert len(answer["numbers"]) == 2
    runs = Run.objects.filter(number__in=answer["numbers"])
    assert [round(run.metrics["throughput_rps"]) for run in runs] == [40, 40]


def test_the_course_of_an_imported_result_file_is_judged(api: ApiClient) -> None:
    answer = api.post("/imports", {"kind": "jmeter", "text": HEAD + jtl(T0, 60, range(20, 40))}).json()
    assert answer["validity"] == "invalid"
    sentences = " ".join(finding["sentence"] for finding in answer["findings"])
    assert "The load stood still for 20 s of 60 s" in sentences


@pytest.mark.parametrize(
    ("header", "level"), [("Running 5s test", "ok"), ("Running 30s test", "invalid"), ("Running 1m test", "invalid")]
)
def test_an_import_that_ended_before_its_time_is_invalid(api: ApiClient, header: str, level: str) -> None:
    text = (CASES / "wrk" / "basic.txt").read_text().replace("Running 5s test", header)
    answer = api.post("/imports", {"kind": "wrk", "text": text}).json()
    found = next(finding for finding in answer["findings"] if finding["check"] == "duration")
    assert found["level"] == level, found["sentence"]


def test_the_backlog_of_wrk2_is_hidden_whatever_the_report_is_called(api: ApiClient) -> None:
    text = (CASES / "wrk2" / "overload-60s.txt").read_text()
    answer = api.post("/imports", {"kind": "wrk", "text": text}).json()
    assert answer["hides_latency"]
    assert "busy connections" not in " ".join(finding["sentence"] for finding in answer["findings"])


def test_a_percentile_of_too_few_requests_is_no_figure(api: ApiClient) -> None:
    figures = {"requests": 574, "duration_s": 60, "latency_p50_ms": 5, "latency_p99_ms": 9, "latency_p99.9_ms": 30}
    answer = api.post("/imports", {"kind": "command", "text": json.dumps(figures)}).json()
    assert {name for name in answer["metrics"] if "_p" in name and "latency" in name} == {"latency_p50_ms"}
