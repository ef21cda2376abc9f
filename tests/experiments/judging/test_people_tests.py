"""The people-tests of docs/verdicts.md: recorded reports through the code, held to the document's sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents.drivers.reading import read_report
from experiments.analysis.findings import HostFigures
from experiments.analysis.saturation import examine
from experiments.analysis.validity import RunValidity
from experiments.judging.evidence.judgement import judge

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests" / "agents" / "cases" / "wrk2"
PUBLISHED = "wrk -c1280 -t128 -R500000 -d60 http://TOMCAT:8080/examples/servlets/servlet/HelloWorldExample"
OVERLOADED = "wrk2 -t8 -c400 -R500000 -d60s http://sut/"
FULL_DRIVER = HostFigures(
    exit_status=0,
    boot_id_changed=False,
    driver_cpu_mean_ratio=0.99,
    sut_cpu_mean_ratio=0.41,
    shared_cpus=False,
    sut_unseen_s=0.0,
    driver_unseen_s=0.0,
)
CALM = HostFigures(exit_status=0, boot_id_changed=False, driver_cpu_mean_ratio=0.4, sut_cpu_mean_ratio=0.97)


def judged(case: str, command: str, hosts: HostFigures) -> RunValidity:
    report = read_report("wrk2", (CASES / f"{case}.txt").read_text(), command)
    return judge(report.to_json(), requested_duration_s=60, hosts=hosts)


def promised(heading: str) -> list[str]:
    """The sentences that the document quotes as a list under this heading."""
    text = (ROOT / "docs" / "verdicts.md").read_text()
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    quoted = "\n".join(line[1:].removeprefix(" ") for line in section.splitlines() if line.startswith(">"))
    return [" ".join(item.split()) for item in re.findall(r"^- (.+(?:\n  .+)*)", quoted, re.MULTILINE)]


@pytest.mark.parametrize(
    ("heading", "case", "command", "hosts", "state"),
    [
        ("The published Tomcat baseline", "published-default", PUBLISHED, CALM, "invalid"),
        ("A saturated driver", "overload-60s", OVERLOADED, FULL_DRIVER, "suspect"),
    ],
)
def test_a_recorded_report_gives_the_sentences_of_the_document(
    heading: str, case: str, command: str, hosts: HostFigures, state: str
) -> None:
    validity = judged(case, command, hosts)
    assert promised(heading)
    assert list(validity.reasons) == promised(heading)
    assert (validity.state, validity.hides_latency) == (state, True)


def test_the_published_runs_come_out_as_the_document_says() -> None:
    states = [
        judged(f"published-{name}", PUBLISHED, CALM).state for name in ("default", "no-access-log", "seven-threads")
    ]
    assert states == ["invalid", "invalid", "suspect"]


@pytest.mark.parametrize(
    ("case", "command", "predicted_s"),
    [("published-seven-threads", PUBLISHED, 24.2), ("overload-60s", OVERLOADED, 32.5)],
)
def test_the_two_rates_alone_predict_the_latency(case: str, command: str, predicted_s: float) -> None:
    found = read_report("wrk2", (CASES / f"{case}.txt").read_text(), command).to_json()
    seen = examine(
        offered_rate_rps=float(str(found["offered_rate_rps"])),
        throughput_rps=float(str(found["throughput_rps"])),
        requests=int(str(found["requests"])),
        duration_s=60,
        connections=int(str(found["connections"])),
        threads=int(str(found["threads"])),
        latency_max_ms=float(str(found["latency_max_ms"])),
    )
    assert seen.predicted_mean_ms == pytest.approx(predicted_s * 1000, abs=50)
    assert float(str(found["latency_mean_ms"])) == pytest.approx(predicted_s * 1000, rel=0.02)
