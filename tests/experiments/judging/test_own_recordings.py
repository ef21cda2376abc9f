"""What nmon recorded in a run: on the run's clock, beside BenchHub's own monitors, and in the verdict on the CPUs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from agents import events as e
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.judging.verdicts.cpu_verdicts import of_runs, of_variants
from experiments.models import Member, Run, Workload
from experiments.registry.documents.versions import save_version
from experiments.running.executing.recorder import Recorder
from tests.experiments.finished import finish_next, report, whole_run
from tests.experiments.judging.test_scaling import sweep

CLOCK_AHEAD_S = 2
"""By how much the SUT's clock is ahead of BenchHub's. Measuring begins at 1000 s of 1970, 00:16:40."""
HEAD = "AAA,progname,nmon\nAAA,host,sut\nCPU_ALL,CPU Total sut,User%,Sys%,Wait%,Idle%,Steal%\n"
TORN = "ZZZZ,T0016,00:1"


def nmon_file(busy_pct: float) -> str:
    """A sample each second from 2 s before measuring on, and half of one more."""
    lines = []
    for at in range(15):
        second = 1000 + CLOCK_AHEAD_S - 2 + at
        lines.append(f"ZZZZ,T{at + 1:04},00:{second // 60:02}:{second % 60:02},01-JAN-1970")
        lines.append(f"CPU_ALL,T{at + 1:04},{busy_pct - 10},10.0,0.0,{100 - busy_pct},0.0")
    return HEAD + "\n".join(lines) + f"\n{TORN}"


@pytest.fixture
def recorded_stock(admin: Member, stock: dict[str, Any]) -> dict[str, Any]:
    """The stock with a workload that asks for nmon."""
    body = {**stock["workload"].body, "recorders": ["nmon"]}
    return {**stock, "workload": save_version(admin, Workload, "recorded", body)}


def run_recorded(
    admin: Member, stock: dict[str, Any], text: str, throughput_rps: float = 1000.0, online: Iterable[int] = ()
) -> Run:
    """A whole run of which nmon recorded the SUT, and nothing on the driver host. Its own monitor saw CPUs `online`."""
    run = launch_run(admin, Choice(**stock))
    found: list[e.AnyEvent] = []
    for event in whole_run(report(throughput_rps)):
        if isinstance(event, e.Samples) and event.role == "sut":
            event = replace(event, values={**event.values, **{f"cpu.{n}.busy_ratio": ("ratio", 0.9) for n in online}})
        if isinstance(event, e.FactsCollected) and event.role == "sut":
            event = replace(event, clock_midpoint_s=float(CLOCK_AHEAD_S))
        found.append(event)
        if isinstance(event, e.LoadReported):
            digest = hashlib.sha256(text.encode()).hexdigest()
            found.append(e.RecordingKept("sut", "nmon", "sut.nmon", len(text), digest))
            Recorder(run.pk, 0).keep_file("sut.nmon", text.encode(), "text/plain; charset=utf-8")
    return finish_next(found)


def test_a_recording_stands_on_the_clock_of_the_load(admin: Member, recorded_stock: dict[str, Any]) -> None:
    run = run_recorded(admin, recorded_stock, nmon_file(88.0))
    line = run.samples.get(role="sut", channel="nmon.cpu.busy_ratio")
    own = run.samples.get(role="sut", channel="cpu.busy_ratio")
    assert line.at_s[:3] == own.at_s[:3] == [-2.0, -1.0, 0.0]
    assert len(line.values) == 15, "the torn end is left out"
    (finding,) = [one for one in run.findings if one["check"] == "recorders"]
    assert finding["level"] == "ok"
    assert finding["evidence"] == {"nmon_sut_cpu_ratio": 0.88, "own_sut_cpu_ratio": 0.9}
    assert finding["sentence"] == (
        "nmon on the SUT saw the CPUs 88 % busy, BenchHub itself 90 %; "
        "nmon on the driver host left no sample of the window."
    )


def test_a_cpu_of_nmon_is_the_one_that_was_online_and_what_a_crash_left_is_no_character(
    admin: Member, recorded_stock: dict[str, Any]
) -> None:
    names = "AAA,progname,nmon\nCPU001,CPU 1,User%,Sys%\nCPU002,CPU 2,User%,Sys%\nNET,Network,e\0th0-read-KB/s\n"
    text = names + "ZZZZ,T0001,00:16:42,01-JAN-1970\nCPU001,T0001,1.0,2.0\nCPU002,T0001,3.0,4.0\nNET,T0001,5.0\n"
    run = run_recorded(admin, recorded_stock, text, online=(0, 3))
    values = run.samples.filter(channel__startswith="nmon.").values_list("channel", "values")
    assert {channel: found for channel, found in values if "user" in channel or "network" in channel} == {
        "nmon.cpu.0.user_ratio": [0.01],
        "nmon.cpu.3.user_ratio": [0.03],
        "nmon.network.eth0.rx_bytes_per_s": [5120.0],
    }


@pytest.mark.parametrize(
    ("text", "level", "words"),
    [
        (nmon_file(60.0), "warn", "saw the CPUs 60 % busy, BenchHub itself 90 %. One of the two is wrong"),
        ("no nmon file", "skipped", "nmon on the SUT left no sample"),
    ],
    ids=["differs", "unreadable"],
)
def test_a_recording_that_does_not_agree_is_named(
    admin: Member, recorded_stock: dict[str, Any], text: str, level: str, words: str
) -> None:
    run = run_recorded(admin, recorded_stock, text)
    (finding,) = [one for one in run.findings if one["check"] == "recorders"]
    assert finding["level"] == level
    assert words in finding["sentence"]


def test_the_cpu_verdict_on_single_runs_says_what_the_recorder_saw(
    admin: Member, recorded_stock: dict[str, Any]
) -> None:
    baseline = run_recorded(admin, recorded_stock, nmon_file(88.0))
    candidate = run_recorded(admin, recorded_stock, nmon_file(53.0), throughput_rps=600.0)
    (found,) = of_runs([baseline, candidate])
    assert found.verdict.quadrant == "too_early"
    assert "nmon recorded 53 % busy against 88 %, BenchHub saw 90 % against 90 %." in found.verdict.sentence


@pytest.mark.parametrize(
    ("busy_ratio", "words"),
    [
        (0.91, "nmon comes to the same: 91 % busy against 88 %."),
        (0.53, "By what nmon recorded it is 'low CPU, low tps': 53 % busy against 88 %, where BenchHub saw 90 %"),
    ],
)
def test_the_cpu_verdict_says_what_the_recorder_comes_to(
    admin: Member, stock: dict[str, Any], busy_ratio: float, words: str
) -> None:
    experiment = sweep(admin, stock, {"0-1": [1000.5] * 5, "2-3": [600.5] * 5}, order="blocks")
    variants, runs = list(experiment.variants.all()), list(experiment.runs.all())
    for run in runs:
        run.metrics["nmon_sut_cpu_ratio"] = busy_ratio if run.variant_id == variants[1].pk else 0.88
    (found,) = of_variants(experiment, variants, runs, list(experiment.verdicts.all()))
    assert found.verdict.quadrant == "high_cpu_low_tps"
    assert words in found.verdict.sentence
