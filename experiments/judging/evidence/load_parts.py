"""What each of several load tools measured that ran at the same time, with the CPU use of its host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models.fields.json import KeyTransform

from agents.spec import RunSpec
from experiments.judging.evidence.judgement import mean_in
from experiments.models import Run, RunEvent, SampleSeries
from experiments.registry.metrics.vocabulary import ERROR_KINDS


@dataclass(frozen=True)
class LoadPartRow:
    """One tool: the driver host it ran on, and the instance of the server it loaded.

    `share_ratio` is its part of all requests, `driver_cpu_ratio` how busy its CPUs were, and `late_s` how long after
    the agreed start it began.
    """

    driver: str
    url: str
    connections: int | None
    requests: int | None
    share_ratio: float | None
    errors: int
    throughput_rps: float | None
    p99_ms: float | None
    driver_cpu_ratio: float | None
    late_s: float | None


def load_parts(run: Run) -> tuple[LoadPartRow, ...]:
    """The tools of the measured phase; none when there was only one, whose figures are the run's own."""
    reported = RunEvent.objects.filter(run=run, kind="load_reported", payload__measured=True).order_by("seq")
    parts = reported.values_list(KeyTransform("parts", "payload"), flat=True).last()
    if not parts or run.spec is None:
        return ()
    spec = RunSpec.model_validate(run.spec)
    duration_s = float(spec.workload.phases[-1].duration_s)
    series = SampleSeries.objects.filter(run=run, channel="cpu_set.busy_ratio")
    cpu_ratio = {one.role: mean_in(one.at_s, one.values, duration_s) for one in series}
    requests = sum(part["report"].get("requests") or 0 for part in parts)
    return tuple(
        _row(part, spec.hosts[part["role"]].name, cpu_ratio.get(part["role"]), of_requests=requests) for part in parts
    )


def _row(part: Mapping[str, Any], driver: str, cpu_ratio: float | None, *, of_requests: int) -> LoadPartRow:
    report = part["report"]
    requests = report.get("requests")
    return LoadPartRow(
        driver=driver,
        url=part["url"],
        connections=report.get("connections") or report.get("users"),
        requests=requests,
        share_ratio=requests / of_requests if requests is not None and of_requests else None,
        errors=sum(report.get(f"errors_{kind}") or 0 for kind in ERROR_KINDS),
        throughput_rps=report.get("throughput_rps"),
        p99_ms=report.get("latency_p99_ms"),
        driver_cpu_ratio=cpu_ratio,
        late_s=part["late_s"],
    )
