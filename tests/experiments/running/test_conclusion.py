"""The end of a run: figures, validity, proof of restore, verdicts, and what is done with a run that cannot go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents import events as e
from agents.base.errors import FenceError
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.models import Experiment, Host, Member, Run, Series, StoredVerdict
from experiments.running.ending.conclusion import conclude, give_up
from experiments.running.executing.recorder import Recorder
from experiments.running.queue.dispatch import claim_next
from tests.experiments.finished import finish_next, report, whole_run


@pytest.fixture
def queued(admin: Member, stock: dict[str, Any]) -> Run:
    return launch_run(admin, Choice(**stock))


def host_states() -> dict[str, tuple[str, int | None]]:
    return {host.name: (host.state, host.leased_by_id) for host in Host.objects.all()}


READY = {"sut-1": ("ready", None), "driver-1": ("ready", None)}


def test_a_run_that_went_well(queued: Run) -> None:
    run = finish_next(whole_run(report(2000.0), output="the tool's words"))
    assert (run.state, run.outcome, run.validity, run.restore) == ("finished", "succeeded", "valid", "verified")
    assert run.throughput_rps == 2000.0
    assert (run.latency_p50_ms, run.latency_p99_ms, run.errors_total) == (6.0, 20.0, 0)
    assert run.metrics["server_cpu_ratio"] == 3.5
    assert run.metrics["cpu_ms_per_request"] == 1.75
    assert run.sut_cpu_ratio == pytest.approx(0.9)
    assert run.driver_cpu_ratio == pytest.approx(0.3)
    assert (run.owner, run.lease_until) == ("", None)
    assert host_states() == READY
    artifact = run.artifacts.get()
    assert (artifact.name, bytes(artifact.content or b"")) == ("0-measure-wrk.txt", b"the tool's words")
    busy = run.samples.get(role="sut", channel="cpu.busy_ratio")
    assert busy.at_s == [float(second) for second in range(-2, 12)]
    assert (busy.unit, busy.values) == ("ratio", [0.9] * 14)
    assert not run.events.filter(kind="samples").exists()
    assert [
        event["moment"]
        for event in run.events.filter(kind="snapshot_taken").order_by("seq").values_list("payload", flat=True)
    ] == [
        "before",
        "after",
    ]
    series = Series.objects.get()
    assert (series.fingerprint, series.last_run, series.tool) == (run.fingerprint, run, "wrk 4.2.0")


OFFERED = {"load_model": "open", "offered_rate_rps": 2000.0}


def with_power(load: dict[str, Any], driver_boot: str, **power: float) -> list[e.AnyEvent]:
    """A run whose hosts, by their part in it, take these watts."""
    events = [
        replace(one, boot_id=driver_boot) if isinstance(one, e.FactsCollected) and one.role == "driver" else one
        for one in whole_run(load)
    ]
    at = next(place for place, one in enumerate(events) if isinstance(one, e.LoadReported))
    shown = [
        e.Samples(role, 1000.0 + second, {"energy.all_watts": ("watts", watts)})
        for role, watts in power.items()
        for second in range(-2, 12)
    ]
    return [*events[:at], *shown, *events[at:]]


@pytest.mark.parametrize(
    ("load", "power", "driver_boot", "energy_j"),
    [
        (OFFERED, {"sut": 120.0, "driver": 60.0}, "boot-2", 0.06),
        ({}, {"sut": 120.0}, "boot-2", None),
        (OFFERED, {"driver": 60.0}, "boot-2", None),
        (OFFERED, {"sut": 120.0}, "boot-1", None),
    ],
    ids=["at an offered rate", "closed loop", "unknown", "the load tool ran there"],
)
def test_a_request_has_its_energy_where_it_is_known_and_the_rate_was_offered(
    queued: Run, load: dict[str, Any], power: dict[str, float], driver_boot: str, energy_j: float | None
) -> None:
    run = finish_next(with_power(report(2000.0, **load), driver_boot, **power))
    assert run.metrics.get("energy_j_per_request") == pytest.approx(energy_j)


@pytest.mark.parametrize(
    "load",
    [
        report(errors_connect=1280),
        report(errors_status=10_000),
        {**report(), "requests": 0, "throughput_rps": 0.0},
        report(requests=4000),
        report(complete=False, usable=False, error="broken", why="broken"),
    ],
    ids=["connect", "status", "nothing", "short", "no report"],
)
def test_figures_that_mean_nothing_make_the_run_invalid(queued: Run, load: dict[str, Any]) -> None:
    run = finish_next(whole_run(load))
    assert run.validity == "invalid", run.findings
    assert any(finding["level"] == "invalid" for finding in run.findings)


@pytest.mark.parametrize(
    "exit_status, words", [(1, "ended with exit status 1"), (None, "exit status")], ids=["failed", "unknown"]
)
def test_unknown_is_never_success(queued: Run, exit_status: int | None, words: str) -> None:
    found = [
        e.LoadReported(0, True, exit_status, "", "", report()) if isinstance(event, e.LoadReported) else event
        for event in whole_run()
    ]
    run = finish_next(found)
    assert run.validity == "invalid"
    assert any(words in finding["sentence"] for finding in run.findings if finding["level"] == "invalid")


def test_a_host_that_is_not_as_before_is_taken_out_of_service(queued: Run) -> None:
    run = finish_next(whole_run(differences=("sysctl.vm.swappiness was '60' and is '10'",)))
    assert (run.outcome, run.restore) == ("succeeded", "dirty")
    assert host_states() == {"sut-1": ("dirty", None), "driver-1": ("ready", None)}
    assert "vm.swappiness was '60'" in Host.objects.get(name="sut-1").state_reason
    assert run.events.filter(kind="snapshot_taken", payload__values={}).count() == 0  # the evidence stays


def test_a_driver_host_with_something_left_on_it_is_taken_out_of_service(queued: Run) -> None:
    run = finish_next(whole_run(driver_differences=("process 7 wrk of load-0 is still running",)))
    assert run.restore == "dirty"
    assert host_states() == {"sut-1": ("ready", None), "driver-1": ("dirty", None)}


def test_a_run_that_failed_keeps_its_reason_and_the_proof(queued: Run) -> None:
    found = [event for event in whole_run() if not isinstance(event, e.LoadStarted | e.LoadReported | e.Samples)]
    found.insert(-1, e.Failed("measure", "wrk did not run.", "Install it."))
    run = finish_next(found)
    assert (run.outcome, run.failure, run.failure_hint) == ("failed", "wrk did not run.", "Install it.")
    assert (run.validity, run.restore, run.throughput_rps) == ("", "verified", None)
    assert not Series.objects.exists()


def test_a_run_that_touched_nothing_says_so(queued: Run) -> None:
    run = finish_next([e.PhaseStarted("connect"), e.Failed("connect", "unreachable", cancelled=True), e.Restored({})])
    assert (run.outcome, run.restore) == ("cancelled", "")
    assert host_states() == READY


def test_concluding_again_changes_nothing_and_a_stale_holder_may_not(queued: Run) -> None:
    run = finish_next()
    conclude(run.pk, run.fence, Recorder(run.pk, run.fence).record())
    again = Run.objects.get(pk=run.pk)
    assert again.finished_at == run.finished_at
    assert again.samples.count() == run.samples.count() > 0


@pytest.mark.parametrize(
    "events, outcome, states",
    [
        ([], "lost", READY),
        (whole_run()[:9], "lost", {"sut-1": ("dirty", None), "driver-1": ("dirty", None)}),
        (whole_run(), "lost", READY),
        (whole_run(differences=("x",)), "lost", {"sut-1": ("dirty", None), "driver-1": ("ready", None)}),
        ([e.Failed("connect", "first")], "failed", READY),
    ],
    ids=["untouched", "not put back", "proven", "proven dirty", "failed before"],
)
def test_a_run_that_cannot_go_on_is_given_up(
    queued: Run, events: list[e.AnyEvent], outcome: str, states: dict[str, Any]
) -> None:
    run = claim_next("worker")
    assert run is not None
    recorder = Recorder(run.pk, run.fence)
    for event in events:
        recorder.store(event)
    with pytest.raises(FenceError):
        give_up(run.pk, run.fence - 1, "BenchHub made a mistake.", "Look.")
    for _ in range(2):
        give_up(run.pk, run.fence, "BenchHub made a mistake.", "Look.")
    run.refresh_from_db()
    assert (run.state, run.outcome) == ("finished", outcome)
    assert run.failure == ("first" if outcome == "failed" else "BenchHub made a mistake.")
    assert host_states() == states


@pytest.fixture
def experiment(admin: Member, stock: dict[str, Any]) -> Experiment:
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    candidates = [Candidate(name="default", **sides), Candidate(name="many", parameters={"nofile": 99999}, **sides)]
    made = create_experiment(admin, name="files", workload=stock["workload"], candidates=candidates, repetitions=5)
    launch_experiment(admin, made)
    return made


NOISE = (1.0, 1.004, 0.997, 1.002, 0.999)


def finish_all(experiment: Experiment, factor: float, **more: Any) -> None:
    for _ in range(10):
        run = experiment.runs.filter(state="queued").order_by("id").first()
        assert run is not None
        assert run.variant is not None
        candidate = run.variant.name == "many"
        throughput = 1000.0 * NOISE[run.block or 0] * (factor if candidate else 1.0)
        finish_next(whole_run(report(throughput, **(more if candidate else {}))))


def test_the_verdict_is_stored_when_runs_end(experiment: Experiment) -> None:
    finish_all(experiment, 1.2)
    experiment.refresh_from_db()
    assert experiment.state == "finished"
    verdicts = {verdict.metric: verdict for verdict in StoredVerdict.objects.all()}
    assert {"throughput_rps", "latency_p99_ms"} <= set(verdicts)
    assert [metric for metric, verdict in verdicts.items() if verdict.numbers["decides"]] == ["throughput_rps"]
    faster = verdicts["throughput_rps"]
    assert faster.outcome == "better"
    assert faster.numbers["estimate_pct"] == pytest.approx(20.0, abs=0.01)
    assert (faster.numbers["n_a"], faster.numbers["n_b"], faster.numbers["design"]) == (5, 5, "blocked")
    assert "many" in faster.sentence
    assert verdicts["latency_p99_ms"].outcome == "better"


@pytest.mark.parametrize("factor, outcome", [(1.0, "no_practical_difference"), (0.8, "worse")])
def test_a_verdict_may_be_that_nothing_changed_or_a_loss(experiment: Experiment, factor: float, outcome: str) -> None:
    finish_all(experiment, factor)
    assert StoredVerdict.objects.get(metric="throughput_rps").outcome == outcome


def test_invalid_runs_are_missing_repetitions(experiment: Experiment) -> None:
    finish_all(experiment, 1.5, errors_connect=1280)
    verdict = StoredVerdict.objects.get(metric="throughput_rps")
    assert verdict.outcome == "invalid"
    assert verdict.numbers["n_b"] == 0
