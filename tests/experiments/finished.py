"""Events of made-up runs: what a runner would have reported, for tests of the record and of what is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models.functions import Now

from agents import events as e
from agents.events import to_json
from agents.working.storable import storable
from experiments.asking.tunings.live import TUNINGS
from experiments.models import Run, RunEvent, TuningTrial
from experiments.running.ending.conclusion import conclude
from experiments.running.executing.recorder import Recorder
from experiments.running.queue.dispatch import claim_next

FACTS = {"cpu.online": "0-3", "cpu.model": "test"}
SETTINGS = {"sysctl.vm.swappiness": "60"}


def report(throughput_rps: float = 1000.0, **more: Any) -> dict[str, Any]:
    """A load report of 10 s of wrk that nothing is wrong with."""
    return {
        "tool": "wrk",
        "format": "wrk-text",
        "complete": True,
        "usable": True,
        "load_model": "closed",
        "latency_basis": "service_time",
        "threads": 2,
        "connections": 16,
        "duration_s": 10.0,
        "requests": round(throughput_rps * 10),
        "throughput_rps": throughput_rps,
        "errors_connect": 0,
        "errors_read": 0,
        "errors_write": 0,
        "errors_timeout": 0,
        "errors_status": 0,
        "latency_mean_ms": 16_000 / throughput_rps,
        "latency_stdev_ms": 1.0,
        "latency_max_ms": 60.0,
        "latency_p50_ms": 12_000 / throughput_rps,
        "latency_p99_ms": 40_000 / throughput_rps,
        **more,
    }


def whole_run(
    load: Mapping[str, Any] | None = None,
    *,
    configuration: Mapping[str, str] | None = None,
    differences: tuple[str, ...] = (),
    driver_differences: tuple[str, ...] = (),
    output: str = "output",
) -> list[e.AnyEvent]:
    """The events of a run of 10 s on two hosts; one sample per second of each."""
    found: list[e.AnyEvent] = []
    for phase in e.PHASES:
        found.append(e.PhaseStarted(phase))
        if phase == "facts":
            found.append(e.FactsCollected("sut", "a" * 64, FACTS, "/sut", "boot-1", 0.0, "11.0.9"))
            found.append(e.FactsCollected("driver", "b" * 64, FACTS, "/driver", "boot-2", 0.0, "4.2.0"))
        elif phase == "snapshot":
            found.append(e.SnapshotTaken("before", SETTINGS))
        elif phase == "tune":
            found.append(e.StepIntended(0, "Private instance directory", {}, ("rm -rf -- /sut/instance",)))
            found.append(e.StepApplied(0, (), {}))
        elif phase == "start":
            found.append(e.JobIntended("server", "sut", "/sut/jobs/server", "cookie"))
            found.append(e.JobStarted("server", "sut", "/sut/jobs/server", 7, "cookie"))
            found.append(e.ConfigurationCaptured(configuration or SETTINGS))
        elif phase == "measure":
            found.append(e.LoadStarted(0, True, 10, 1000.0))
            found += _samples()
            found.append(e.LoadReported(0, True, 0, output, "00", load or report()))
        elif phase == "restore":
            found.append(e.StepReverted(0))
        elif phase == "verify":
            found.append(e.SnapshotTaken("after", SETTINGS))
        found.append(e.PhaseFinished(phase, 0.5))
    left = {"sut": differences, "driver": driver_differences}
    return [*found, e.Restored({role: texts for role, texts in left.items() if texts})]


def _samples() -> Iterable[e.Samples]:
    roles: tuple[e.Role, e.Role] = ("sut", "driver")
    for second in range(-2, 12):
        for role, busy in zip(roles, (0.9, 0.3), strict=True):
            values = {"cpu.busy_ratio": ("ratio", busy), "cpu_set.busy_ratio": ("ratio", busy)}
            if role == "sut":
                values["process.cpu_ratio"] = ("ratio", 3.5)
            yield e.Samples(role, 1000.0 + second, values)


def finish_next(found: Iterable[e.AnyEvent] | None = None) -> Run:
    """Claim the next run of the queue and let these events happen in it, to its end."""
    run = claim_next("test")
    assert run is not None
    recorder = Recorder(run.pk, run.fence)
    _store(recorder, found if found is not None else whole_run())
    conclude(run.pk, run.fence, recorder.record())
    for tuning_id in TuningTrial.objects.filter(run=run).values_list("tuning", flat=True):
        TUNINGS.work_out(tuning_id)  # it follows the commit, which a test does not come to
    run.refresh_from_db()
    return run


def _store(recorder: Recorder, found: Iterable[e.AnyEvent]) -> None:
    """Leave what `Recorder.store` leaves of each event, with a tenth of the queries; that one has tests of its own."""
    row, rows = Run.objects.filter(pk=recorder.run_id, fence=recorder.fence), list[RunEvent]()
    state: dict[str, Any] = {}
    for seq, event in enumerate(found, start=recorder._stored_seq() + 1):
        shown = recorder._showing.fit(event)
        payload = storable(to_json(shown))
        kept = {"run_id": recorder.run_id, "fence": recorder.fence, "at": Now(), "kind": shown.kind}
        rows.append(RunEvent(seq=seq, payload=payload, **kept))
        changes = recorder._changes(shown)
        if isinstance(shown, e.PhaseStarted):
            state = changes
        elif changes:
            row.update(**changes)
    RunEvent.objects.bulk_create(rows)
    row.update(last_seq=recorder._stored_seq() + len(rows), **state)
