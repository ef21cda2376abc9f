"""The end of a run: figures, validity, series, restore proof and verdicts, all in one transaction.

What follows from the end is in it, too: the retry, the next trial, the next blocks, the next step, the messages. Those
are told by `registry.events`, and one of them that fails does not undo the end.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Exists, OuterRef

from agents.base.errors import FenceError
from agents.events import LoadReported, Restored, SnapshotTaken, from_json, to_json
from agents.record import Record
from agents.spec import RunSpec
from experiments.judging.alerts.trends import follow
from experiments.judging.evidence.energy import energy_j_per_request
from experiments.judging.evidence.judgement import findings_json
from experiments.judging.evidence.load_course import began_unix_s, load_points
from experiments.judging.evidence.observed import (
    Channels,
    busiest_use,
    cpu_use,
    gc_points,
    jvm_points,
    recorded_cpus,
    validity_of,
    window_s,
)
from experiments.judging.evidence.own_recordings import recorded_points
from experiments.judging.evidence.roles import role_figures
from experiments.judging.evidence.thresholds import thresholds_of
from experiments.judging.verdicts.judging import store_verdicts
from experiments.models import Experiment, Host, Run, RunEvent, SampleSeries
from experiments.models.experiments import UNDER_WAY
from experiments.registry.database_clock import database_now
from experiments.registry.errors import DATABASE_AWAY
from experiments.registry.events import BlocksEnded, ExperimentEnded, RunEnded, tell
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.hosts.quarantine import quarantine
from experiments.registry.metrics.normalisation import per_cpu, sut_cpus
from experiments.registry.metrics.own_metrics import learn
from experiments.registry.metrics.vocabulary import METRICS, declared, figures
from experiments.registry.runs.artifacts import keep
from experiments.registry.runs.latency_spectra import keep_spectrum
from experiments.registry.runs.run_profiles import complete
from experiments.registry.runs.series import extend_series
from experiments.registry.runs.summary import summarise
from experiments.registry.workers.tallies import tally_run

logger = logging.getLogger(__name__)

LEAST_SERVER_SHARE_RATIO = 0.01
"""Of the busy CPUs. No server answers for nothing: with less, those who did the work are not the processes that were
read, as when a server became a daemon and left the one that BenchHub started."""
MOST_STUCK = 20


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
            keep_spectrum(run, measured.spectrum)
            complete(run)
        _restore_proof(run, record)
        worker = _finish(run)
        if run.outcome == Run.Outcome.SUCCEEDED:
            join_history(run, spec, record.facts["driver"].tool_version)
        run_ended(run, worker)
        tally_run(run)


def join_history(run: Run, spec: RunSpec, tool_version: str) -> None:
    """Make a run that counts the newest one of its series; an invalid one is no part of any history.

    A load that is not its workload's own was chosen for this run alone: there is no history of it either. A profiled
    run is slower than it would be without, so it has none.
    """
    if not run.fingerprint or run.validity not in Run.USABLE or run.profiled or spec.workload.is_own_load:
        return
    series = extend_series(
        run,
        application=str(run.application),
        workload=str(run.workload),
        tool=f"{spec.workload.driver.kind} {tool_version}",
        latency_basis=spec.workload.driver.latency_basis,
    )
    follow(run, series)


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
            for host_id in set(hosts_by_role(run).values()):
                quarantine(run, host_id, (doubt or "it was not put back",), try_again=not doubt)
        run_ended(run, _finish(run))
        tally_run(run)


def run_ended(run: Run, worker: str = "") -> None:
    """What follows from the end of a run. Call in the transaction that ends it; nothing of this undoes the end."""
    tell(RunEnded(run, worker))
    if run.experiment_id is None:
        return
    try:
        with transaction.atomic():
            conclude_experiment(run.experiment_id)
    except DATABASE_AWAY:
        raise
    except Exception:  # `conclude_stuck` tries again
        logger.exception("experiment %s could not be judged", run.experiment_id)


def conclude_experiment(experiment_id: int) -> None:
    """Judge the experiment again after one of its runs ended; when all have, its stop rule says what follows."""
    experiment = Experiment.objects.select_for_update(of=("self",)).get(pk=experiment_id)
    store_verdicts(experiment, spent=experiment.state == Experiment.State.CANCELLED)
    if experiment.runs.exclude(state=Run.State.FINISHED).exists():
        return
    ended = experiment.state == Experiment.State.CANCELLED
    if experiment.state in UNDER_WAY:
        tell(BlocksEnded(experiment))
        experiment.refresh_from_db()  # not what a follower meant to change when it failed
        ended = experiment.state == Experiment.State.FINISHED
    if ended:
        tell(ExperimentEnded(experiment))


def conclude_stuck() -> None:
    """Judge those again that run without an open run: what ended their last one could not be finished then.

    In an order of chance: those that fail each time keep no other from its turn.
    """
    is_open = Run.objects.filter(experiment=OuterRef("pk")).exclude(state=Run.State.FINISHED)
    stuck = Experiment.objects.filter(~Exists(is_open), state=Experiment.State.RUNNING).order_by("?")
    for experiment_id in stuck.values_list("pk", flat=True)[:MOST_STUCK]:
        try:
            with transaction.atomic():
                conclude_experiment(experiment_id)
        except Exception:
            logger.exception("experiment %s could not be judged", experiment_id)


def _held(run_id: int, fence: int) -> Run | None:
    """The run's row, locked, None when it is finished already. FenceError when another worker holds it."""
    run: Run = Run.objects.select_for_update(of=("self",)).get(pk=run_id)
    if run.state == Run.State.FINISHED:
        return None
    if run.fence != fence:
        raise FenceError("Another worker holds this run now.")
    return run


def _finish(run: Run) -> str:
    """Returns who executed it last."""
    worker = run.owner
    run.state, run.finished_at, run.lease_until, run.owner = Run.State.FINISHED, database_now(), None, ""
    run.save()
    Host.objects.filter(leased_by=run).update(leased_by=None)
    return worker


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
    duration_s = window_s(spec, record, measured)
    metrics: dict[str, float] = figures(measured.report)
    metrics |= _known(
        sut_cpu_ratio=cpu_use("sut", channels, duration_s),
        driver_cpu_ratio=busiest_use(spec.driver_roles, channels, duration_s),
        server_cpu_ratio=channels.mean("sut", ["process.cpu_ratio"], duration_s),
        sut_memory_used_bytes=channels.mean("sut", ["memory.used_bytes"], duration_s),
        sut_mhz=channels.mean("sut", ["cpu_set.mean_mhz"], duration_s),
    )
    metrics |= role_figures(spec, channels, duration_s)
    recorded = [one for one in recorded_cpus(spec, channels, duration_s) if one.role == "sut"]
    metrics |= _known(**{f"{one.tool}_sut_cpu_ratio": one.recorded_ratio for one in recorded})
    cpus = sut_cpus(spec, channels.names("sut", "cpu."), record.facts["sut"].profile)
    if (used := metrics.get("server_cpu_ratio")) is not None:
        busy_cpus = (channels.mean("sut", ["cpu_set.busy_ratio"], duration_s) or 0.0) * (cpus or 0)
        metrics |= {"sut_busy_cpus": busy_cpus} if busy_cpus else {}
        if not used or used < LEAST_SERVER_SHARE_RATIO * busy_cpus:
            del metrics["server_cpu_ratio"]
    if metrics.get("throughput_rps") and "server_cpu_ratio" in metrics:
        metrics["cpu_ms_per_request"] = metrics["server_cpu_ratio"] * 1000 / metrics["throughput_rps"]
    metrics |= _known(energy_j_per_request=energy_j_per_request(spec, record, measured.report, channels, duration_s))
    metrics |= per_cpu(metrics, cpus)
    summarise(run, metrics)
    headlines = set(spec.workload.driver.headlines()) - METRICS.keys()
    learn(run.team, declared(measured.report), follow=headlines, few_as_well=not headlines)
    validity = validity_of(spec, record, measured, channels, thresholds_of(run.team))
    run.validity, run.findings, run.hides_latency = validity.state, findings_json(validity), validity.hides_latency


def _compact_samples(run: Run, record: Record) -> Channels:
    """Turn the samples' events into one row of arrays per channel, and drop the events."""
    started = began_unix_s(record)
    points = load_points(record, started)
    for role in dict.fromkeys(role for role, _ in record.gc_pauses):
        paused_at_s, pauses_ms = gc_points(record, role, started)
        if pauses_ms:
            points[role, "gc.pause_ms"] = ("ms", paused_at_s, pauses_ms)
        points |= {(role, channel): found for channel, found in jvm_points(record, role, started).items()}
    events = RunEvent.objects.filter(run=run, kind="samples").order_by("seq")
    for payload in events.values_list("payload", flat=True).iterator():
        for channel, (unit, value) in payload["values"].items():
            _, at_s, values = points.setdefault((payload["role"], channel), (unit, [], []))
            at_s.append(round(payload["at_unix_s"] - started, 3))
            values.append(value)
    points |= recorded_points(run, record, started, points)
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
            role = event.payload.get("role", "sut")
            event.payload = to_json(SnapshotTaken(event.payload["moment"], {}, role))
            event.save(update_fields=["payload"])


def _quarantine(run: Run, restored: Restored) -> None:
    hosts = hosts_by_role(run)
    for host_id in dict.fromkeys(hosts.values()):
        roles = [role for role, pk in hosts.items() if pk == host_id]  # one host may be SUT and driver host
        left = dict.fromkeys(text for role in roles for text in restored.differences.get(role, ()))
        quarantine(run, host_id, tuple(left), try_again=any(role in restored.away for role in roles))


def _known(**values: float | None) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
