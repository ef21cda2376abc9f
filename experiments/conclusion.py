"""The end of a run: figures, validity, series, restore proof and verdicts, all in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from agents.cpuset import parse_cpus
from agents.errors import FenceError
from agents.events import LoadReported, Restored, SnapshotTaken, from_json, to_json
from agents.preparation import server_cpus
from agents.record import Record
from agents.spec import RunSpec
from experiments.analysis.validity import HostFigures
from experiments.artifacts import keep
from experiments.judgement import findings_json, judge, mean_in, stalled_s, store_verdicts
from experiments.load_course import load_points
from experiments.metrics import figures
from experiments.models import Experiment, Host, Run, RunEvent, SampleSeries
from experiments.quarantine import quarantine
from experiments.retries import queue_retry
from experiments.series import extend_series
from experiments.summary import summarise
from experiments.tallies import tally_run

logger = logging.getLogger(__name__)


@dataclass
class Channels:
    """The in-run samples of both hosts, t = 0 where measuring began."""

    series: dict[tuple[str, str], SampleSeries]

    def mean(self, role: str, channels: Sequence[str], duration_s: float) -> float | None:
        """The mean over the measured window and over these channels; None when none of them has a sample there."""
        means = [
            value
            for channel in channels
            if (found := self.series.get((role, channel)))
            and (value := mean_in(found.at_s, found.values, duration_s)) is not None
        ]
        return sum(means) / len(means) if means else None

    def names(self, role: str, prefix: str) -> list[str]:
        return [channel for owner, channel in self.series if owner == role and channel.startswith(prefix)]


def conclude(run_id: int, fence: int, record: Record) -> None:
    """Finish the run that this record describes. Safe to repeat until it is committed; FenceError = not ours."""
    with transaction.atomic():
        run = _held(run_id, fence)
        if run is None:
            return
        spec = RunSpec.model_validate(run.spec)
        channels = _compact_samples(run, record)
        _keep_outputs(run, record, spec)
        _outcome(run, record)
        if measured := next((r for r in record.reports.values() if r.measured), None):
            _figures(run, spec, record, measured, channels)
        _restore_proof(run, record)
        _finish(run)
        if run.outcome == Run.Outcome.SUCCEEDED and run.fingerprint:
            driver = spec.workload.driver
            extend_series(
                run,
                application=str(run.application),
                workload=str(run.workload),
                tool=f"{driver.kind} {record.facts['driver'].tool_version}",
                latency_basis=driver.latency_basis,
            )
        if run.experiment_id is not None:
            conclude_experiment(run.experiment_id)
        tally_run(run)


def give_up(run_id: int, fence: int, message: str, hint: str, *, doubt: str = "") -> None:
    """Finish a run that BenchHub itself cannot carry on with: lost, and its hosts dirty unless proven restored.

    `doubt`: why the hosts are not to be trusted although the run may not have touched them; a person must look then.
    """
    with transaction.atomic():
        run = _held(run_id, fence)
        if run is None:
            return
        if run.outcome == Run.Outcome.NONE:
            run.outcome, run.failure, run.failure_hint = Run.Outcome.LOST, message, hint
            run.cause = Run.Cause.BENCHHUB
        restored = RunEvent.objects.filter(run=run, kind="restored").values_list("payload", flat=True).last()
        if restored is not None:
            event = from_json(restored)
            if isinstance(event, Restored):
                _quarantine(run, event)
        elif doubt or RunEvent.objects.filter(run=run, kind="facts_collected").exists():
            for host_id in (run.sut_id, run.driver_id):
                quarantine(run, host_id, (doubt or "it was not put back",), try_again=not doubt)
        _finish(run)
        if run.experiment_id is not None:
            try:
                with transaction.atomic():
                    conclude_experiment(run.experiment_id)
            except Exception:  # it may be the very thing that could not be done
                logger.exception("experiment %s could not be judged", run.experiment_id)
        tally_run(run)


def conclude_experiment(experiment_id: int) -> None:
    """Judge the experiment again after one of its runs ended; it is finished when all of them are."""
    experiment = Experiment.objects.select_for_update(of=("self",)).get(pk=experiment_id)
    store_verdicts(experiment)
    running = experiment.runs.exclude(state=Run.State.FINISHED).exists()
    if not running and experiment.state == Experiment.State.RUNNING:
        Experiment.objects.filter(pk=experiment_id).update(state=Experiment.State.FINISHED)


def _held(run_id: int, fence: int) -> Run | None:
    """The run's row, locked, None when it is finished already. FenceError when another worker holds it."""
    run: Run = Run.objects.select_for_update(of=("self",)).get(pk=run_id)
    if run.state == Run.State.FINISHED:
        return None
    if run.fence != fence:
        raise FenceError("Another worker holds this run now.")
    return run


def _finish(run: Run) -> None:
    run.state, run.finished_at, run.lease_until, run.owner = Run.State.FINISHED, timezone.now(), None, ""
    run.save()
    Host.objects.filter(leased_by=run).update(leased_by=None)
    queue_retry(run)  # before the experiment is judged: it goes on while one of its runs waits


def _outcome(run: Run, record: Record) -> None:
    if record.failed is not None:
        run.outcome = Run.Outcome.CANCELLED if record.failed.cancelled else Run.Outcome.FAILED
        run.failure, run.failure_hint = record.failed.message, record.failed.hint
        run.cause = Run.Cause(record.failed.cause)
    elif any(report.measured for report in record.reports.values()):
        run.outcome = Run.Outcome.SUCCEEDED
    else:
        run.outcome, run.failure = Run.Outcome.FAILED, "The run ended without a measurement."


def _figures(run: Run, spec: RunSpec, record: Record, measured: LoadReported, channels: Channels) -> None:
    duration_s = float(record.loads[measured.index].duration_s)
    requested_s = _requested_s(spec, measured, duration_s)
    if spec.workload.driver.may_end_early:  # idle time behind the end of the load is no part of what was measured
        duration_s = min(duration_s, measured.report.get("duration_s") or duration_s)
    metrics: dict[str, float] = figures(measured.report)
    metrics |= _known(
        sut_cpu_ratio=channels.mean("sut", ["cpu_set.busy_ratio"], duration_s),
        driver_cpu_ratio=channels.mean("driver", ["cpu_set.busy_ratio"], duration_s),
        server_cpu_ratio=channels.mean("sut", ["process.cpu_ratio"], duration_s),
    )
    if metrics.get("throughput_rps") and "server_cpu_ratio" in metrics:
        metrics["cpu_ms_per_request"] = metrics["server_cpu_ratio"] * 1000 / metrics["throughput_rps"]
    summarise(run, metrics)
    hosts = _host_figures(spec, record, measured, channels, metrics, duration_s)
    validity = judge(measured.report, requested_duration_s=requested_s, hosts=hosts)
    run.validity, run.findings, run.hides_latency = validity.state, findings_json(validity), validity.hides_latency


def _requested_s(spec: RunSpec, measured: LoadReported, duration_s: float) -> float | None:
    """How long the load was to last; None when the tool did an amount of work, or began as late as it may."""
    driver = spec.workload.driver
    lasted_s = measured.report.get("duration_s") or 0.0
    in_time = driver.late_start_s > 0 and lasted_s >= duration_s - driver.late_start_s
    return None if driver.may_end_early or in_time else duration_s


def _host_figures(
    spec: RunSpec,
    record: Record,
    measured: LoadReported,
    channels: Channels,
    metrics: dict[str, float],
    duration_s: float,
) -> HostFigures:
    threads = [
        mean
        for name in channels.names("driver", "threads.")
        if name.endswith(".cpu_ratio") and (mean := channels.mean("driver", [name], duration_s)) is not None
    ]
    counts = channels.mean("driver", [n for n in channels.names("driver", "threads.") if n.endswith(".count")], 1e9)
    stalls = [
        stalled
        for name in channels.names("sut", "network.")
        if name.endswith("rx_packets_per_s")
        and sum((series := channels.series["sut", name]).values) > 0
        and (stalled := stalled_s(series.at_s, series.values, duration_s)) is not None
    ]
    sut, driver = record.facts["sut"], record.facts["driver"]
    same_machine = bool(sut.boot_id) and sut.boot_id == driver.boot_id
    shared = same_machine and bool(
        set(parse_cpus(server_cpus(spec))) & set(parse_cpus(spec.workload.cpus))
        or not (server_cpus(spec) and spec.workload.cpus)
    )
    offsets = [abs(facts.clock_offset_s) for facts in (sut, driver) if facts.clock_offset_s is not None]
    return HostFigures(
        exit_status=measured.exit_status,
        # A job of another boot is dead: the tool's exit status and the server that lived on prove that there was none.
        boot_id_changed=False if "collect" in record.finished_phases and sut.boot_id and driver.boot_id else None,
        driver_cpu_mean_ratio=metrics.get("driver_cpu_ratio"),
        # Threads of one name are summed; only the tool with a single thread shows that thread alone.
        driver_thread_max_ratio=max(threads) if threads and counts == 1 else None,
        sut_cpu_mean_ratio=metrics.get("sut_cpu_ratio"),
        steal_ratio=channels.mean("sut", ["cpu.steal_ratio"], duration_s),
        governor=sut.profile.get("power.governor"),
        network_stalled_s=min(stalls) if stalls else None,
        clock_offset_s=max(offsets) if offsets else None,
        shared_cpus=shared,
    )


def _compact_samples(run: Run, record: Record) -> Channels:
    """Turn the samples' events into one row of arrays per channel, and drop the events."""
    started = next((load.at_unix_s for load in record.loads.values() if load.measured), None)
    if started is None:
        started = next((load.at_unix_s for load in record.loads.values()), 0.0)
    points = load_points(record, started)
    events = RunEvent.objects.filter(run=run, kind="samples").order_by("seq")
    for payload in events.values_list("payload", flat=True).iterator():
        for channel, (unit, value) in payload["values"].items():
            _, at_s, values = points.setdefault((payload["role"], channel), (unit, [], []))
            at_s.append(round(payload["at_unix_s"] - started, 3))
            values.append(value)
    series = {
        key: SampleSeries(run=run, role=key[0], channel=key[1], unit=unit, at_s=at_s, values=values)
        for key, (unit, at_s, values) in points.items()
    }
    SampleSeries.objects.bulk_create(series.values(), ignore_conflicts=True)
    events.delete()
    return Channels(series)


def _keep_outputs(run: Run, record: Record, spec: RunSpec) -> None:
    phases = spec.workload.phases
    for index, report in record.reports.items():
        keep(run, f"{index}-{phases[index].kind}-{spec.workload.driver.kind}.txt", report.output.encode())


def _restore_proof(run: Run, record: Record) -> None:
    """Verified, or dirty with the host out of service. Snapshots that proved equal are dropped: they have served."""
    restored = record.restored
    if restored is None or "sut" not in record.facts:
        run.restore = Run.Restore.NONE
        return
    run.restore = Run.Restore.VERIFIED if record.intended else Run.Restore.NONE
    _quarantine(run, restored)
    if run.restore != Run.Restore.DIRTY:
        for event in RunEvent.objects.filter(run=run, kind="snapshot_taken"):
            event.payload = to_json(SnapshotTaken(event.payload["moment"], {}))
            event.save(update_fields=["payload"])


def _quarantine(run: Run, restored: Restored) -> None:
    sut, driver = restored.differences, restored.driver_differences
    if run.sut_id == run.driver_id:
        quarantine(run, run.sut_id, tuple(dict.fromkeys((*sut, *driver))), try_again=bool(restored.away))
    else:
        quarantine(run, run.sut_id, sut, try_again="sut" in restored.away)
        quarantine(run, run.driver_id, driver, try_again="driver" in restored.away)


def _known(**values: float | None) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
