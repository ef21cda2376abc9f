"""A run as a trace in OpenTelemetry's words: the conventions for CI/CD, and OTLP as JSON.

The experiment is the pipeline, the run its run, a phase a task, and who executed it the worker. Source:
https://opentelemetry.io/docs/specs/semconv/cicd/ and https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents.events import PHASES
from experiments.models import Run, RunEvent
from experiments.registry.runs.windows import Window, from_unix_s, unix_ms

SERVER, INTERNAL = 2, 1
"""Kinds of spans: the conventions ask for SERVER of a pipeline's run and INTERNAL of its tasks."""
OK, ERROR = 1, 2
RESULTS: Mapping[str, str] = {
    Run.Outcome.SUCCEEDED: "success",
    Run.Outcome.FAILED: "failure",
    Run.Outcome.CANCELLED: "cancellation",
    Run.Outcome.LOST: "error",
}
EVENT_KINDS = (
    *("phase_started", "phase_finished", "failed"),
    *("step_intended", "step_applied", "step_reverted", "load_started", "restored"),
)
MOST_STEPS = 100
MAX_TEXT = 1000

Value = str | bool | int | float | Sequence[str]


@dataclass(frozen=True)
class Origin:
    """Which installation it is, so that a repeated message has the same ids and another's never; and its version."""

    installation: str
    version: str
    url: str


def trace_of(run: Run, events: Iterable[RunEvent], worker: str, origin: Origin) -> dict[str, Any]:
    """The body of `POST /v1/traces` for a run that ended; the same run gives the same spans with the same ids.

    ValueError when the run has no start or no end.
    """
    if run.started_at is None or run.finished_at is None:
        raise ValueError(f"Run #{run.number} has no beginning or no end.")
    found = list(events)
    resource = {
        "service.name": "benchhub",
        "service.version": origin.version,
        "service.instance.id": origin.installation,
    }
    window = Window(run.started_at, max(run.started_at, run.finished_at))
    spans = [_run_span(run, window, found, worker, origin), *_phase_spans(run, window, found, origin)]
    scope = {"name": "benchhub.runs", "version": origin.version}
    whole = {"resource": {"attributes": attributes(resource)}, "scopeSpans": [{"scope": scope, "spans": spans}]}
    return {"resourceSpans": [whole]}


def _run_span(run: Run, window: Window, events: Sequence[RunEvent], worker: str, origin: Origin) -> dict[str, Any]:
    pipeline = _pipeline(run)
    said: dict[str, Value | None] = {
        "cicd.pipeline.name": pipeline,
        "cicd.pipeline.action.name": "RUN",
        "cicd.pipeline.run.id": str(run.number),
        "cicd.pipeline.run.url.full": f"{origin.url}/t/{run.team.slug}/runs/{run.number}/",
        "cicd.pipeline.result": RESULTS.get(run.outcome, "error"),
        "cicd.worker.id": worker or None,
        "cicd.worker.name": worker.rpartition("/")[2] or None,
        "error.type": (run.cause or run.outcome) if run.outcome != Run.Outcome.SUCCEEDED else None,
        "benchhub.team": run.team.slug,
        "benchhub.experiment": run.experiment_id,
        "benchhub.variant": run.variant.name if run.variant else None,
        "benchhub.block": run.block,
        "benchhub.hosts": [host.name for host in run.hosts],
        "benchhub.application": str(run.application) if run.application else None,
        "benchhub.recipe": str(run.recipe) if run.recipe else None,
        "benchhub.workload": str(run.workload) if run.workload else None,
        "benchhub.validity": run.validity or None,
        "benchhub.restore": run.restore or None,
        "benchhub.throughput_rps": run.throughput_rps,
        "benchhub.latency_p99_ms": None if run.hides_latency else run.latency_p99_ms,
        **{f"benchhub.label.{key}": value for key, value in run.labels.items()},
    }
    failed = run.outcome != Run.Outcome.SUCCEEDED
    return {
        **_ids(run, origin, "run"),
        "name": f"RUN {pipeline}",
        "kind": SERVER,
        "startTimeUnixNano": nanoseconds(window.start),
        "endTimeUnixNano": nanoseconds(window.end),
        "attributes": attributes(said),
        "events": _marks(events),
        "status": {"code": ERROR, "message": (run.failure or run.outcome)[:MAX_TEXT]} if failed else {"code": OK},
    }


def _phase_spans(run: Run, window: Window, events: Sequence[RunEvent], origin: Origin) -> list[dict[str, Any]]:
    """A phase that another worker went on with is one span, from its first start to its last end."""
    began: dict[str, datetime] = {}
    ended: dict[str, datetime] = {}
    under_way: dict[str, datetime] = {}  # since when, as `agents.record` has it: durations count from there
    failed = {one.payload["phase"]: one for one in events if one.kind == "failed"}
    for event in events:
        if event.kind == "phase_started":
            at_unix_s = event.payload.get("at_unix_s")  # old runs did not say when a phase began
            start = from_unix_s(at_unix_s) if at_unix_s else event.at
            began.setdefault(event.payload["phase"], start)
            under_way.setdefault(event.payload["phase"], start)
        elif event.kind == "phase_finished" and (since := under_way.pop(event.payload["phase"], None)):
            # The time of the event is not that of the end: it may have waited for a store that was away.
            ended[event.payload["phase"]] = since + timedelta(seconds=event.payload["duration_s"])
        elif event.kind == "restored":
            under_way.clear()
    spans = []
    for phase in (name for name in PHASES if name in began):
        stopped = failed.get(phase)
        end = ended.get(phase) or (stopped.at if stopped else window.end)
        is_over = phase in ended and not stopped
        said = {
            "cicd.pipeline.name": _pipeline(run),
            "cicd.pipeline.task.name": phase,
            "cicd.pipeline.task.run.id": f"{run.number}/{phase}",
            "cicd.pipeline.task.run.url.full": f"{origin.url}/t/{run.team.slug}/runs/{run.number}/",
            "cicd.pipeline.task.run.result": "success" if is_over else RESULTS.get(run.outcome, "error"),
        }
        message = str(stopped.payload["message"])[:MAX_TEXT] if stopped else "It did not come to its end."
        spans.append(
            {
                **_ids(run, origin, f"phase {phase}"),
                "parentSpanId": _ids(run, origin, "run")["spanId"],
                "name": phase,
                "kind": INTERNAL,
                "startTimeUnixNano": nanoseconds(began[phase]),
                "endTimeUnixNano": nanoseconds(max(end, began[phase])),
                "attributes": attributes(said),
                "status": {"code": OK} if is_over else {"code": ERROR, "message": message},
            }
        )
    return spans


def _marks(events: Sequence[RunEvent]) -> list[dict[str, Any]]:
    """Steps applied and undone, loads begun, and the proof, as events of the run's span."""
    titles = {one.payload["index"]: one.payload["title"] for one in events if one.kind == "step_intended"}
    found = []
    for event in events:
        payload = event.payload
        if event.kind in ("step_applied", "step_reverted"):
            done = "applied" if event.kind == "step_applied" else "undone"
            said: dict[str, Value | None] = {"benchhub.step": titles.get(payload["index"], str(payload["index"]))}
            found.append(_mark(event.at, f"step {done}", said))
        elif event.kind == "load_started":
            said = {"benchhub.measured": payload["measured"], "benchhub.duration_s": payload["duration_s"]}
            found.append(_mark(from_unix_s(payload["at_unix_s"]), "load started", said))
        elif event.kind == "restored":
            left = [text for texts in payload["differences"].values() for text in texts]
            found.append(_mark(event.at, "restored", {"benchhub.differences": left[:10]}))
    return found[:MOST_STEPS]


def _mark(at: datetime, name: str, said: Mapping[str, Value | None]) -> dict[str, Any]:
    return {"timeUnixNano": nanoseconds(at), "name": name, "attributes": attributes(said)}


def attributes(said: Mapping[str, Value | None]) -> list[dict[str, Any]]:
    """As OTLP has them in JSON; what is None is left out."""
    return [{"key": key, "value": _value(value)} for key, value in said.items() if value is not None]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [_value(one) for one in value]}}


def nanoseconds(moment: datetime) -> str:
    """Since 1970, as text: JSON has no whole numbers of that size."""
    return str(unix_ms(moment) * 1_000_000 + moment.microsecond % 1000 * 1000)


def _pipeline(run: Run) -> str:
    if run.experiment:
        return str(run.experiment.name)
    return " · ".join(part.name for part in (run.application, run.workload) if part) or "run"


def _ids(run: Run, origin: Origin, of: str) -> dict[str, str]:
    """16 bytes for the trace of the run and 8 for a span in it, as hex."""
    trace = hashlib.sha256(f"{origin.installation} run {run.pk}".encode()).hexdigest()
    span = hashlib.sha256(f"{trace} {of}".encode()).hexdigest()
    return {"traceId": trace[:32], "spanId": span[:16]}
