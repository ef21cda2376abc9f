"""Recordings of other monitors (nmon, mpstat, top) beside a run's own samples, on the run's clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from agents.base.cpuset import parse_cpus
from agents.base.errors import ParseError
from agents.events import Role as Part
from agents.recordings import read_recording
from agents.recordings.base import Recording
from agents.spec import MAX_DRIVERS, RunSpec, driver_role
from agents.system import LOADED
from experiments.models import Member, Role, Run, SampleSeries
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.runs.artifacts import keep
from experiments.registry.runs.recording_channels import channel_name, kernel_names
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record

MAX_RECORDING_CHARS = 8_000_000
MARGIN_S = 3600.0
"""How far a recording may lie from the measured time: more is a clock of another zone."""
CPU_NUMBERS = (
    "nmon numbers the CPUs that are online without gaps, and this run does not tell which were: with CPUs offline its "
    "numbers are not the kernel's."
)


@dataclass(frozen=True)
class ImportedRecording:
    """What was stored. `first_s` and `last_s` count from where measuring began."""

    channels: tuple[str, ...]
    first_s: float
    last_s: float
    notes: tuple[str, ...]


def import_recording(
    member: Member,
    run: Run,
    *,
    role: Part,
    kind: str,
    text: str,
    started_at: datetime | None = None,
) -> ImportedRecording:
    """Store a recording of one of the run's hosts as channels of the run, and the file itself as an artifact.

    `started_at` is the moment of its first sample; without it the file's own clock counts, read as UTC. The channels
    have the tool's name in front: `nmon.cpu.busy_ratio`. Another recording of the same tool and host replaces it.
    """
    require(member, Role.LAUNCHER)
    if run.measured_at is None or run.is_live:
        raise Conflict(f"Run #{run.number} has not measured, or still runs: a recording belongs to a finished run.")
    if role not in _parts_of(run):
        raise RequestError(f"Run #{run.number} has no host with the part {role}.", field="role")
    if started_at is not None and timezone.is_naive(started_at):
        raise RequestError("started_at needs an offset, for example Z.", field="started_at")
    recording = _read(kind, text)
    began = started_at or recording.started_at
    if began is None:
        raise RequestError(
            f"A recording of {kind} has no date: say when its first sample was taken.", field="started_at"
        )
    if not recording.channels:
        raise RequestError("There is no sample in the recording.", field="text")
    shift_s = (began - run.measured_at).total_seconds()
    last_s = shift_s + max(line.at_s[-1] for line in recording.channels.values())
    if shift_s > MARGIN_S + _measured_s(run) or last_s < -MARGIN_S:
        raise RequestError(
            f"The recording begins at {began.isoformat(' ', 'seconds')} and lasts {last_s - shift_s:,.0f} s, the run "
            f"measured from {run.measured_at:%Y-%m-%d %H:%M:%S} UTC on. Give the time of its first sample, with its "
            "offset.",
            field="started_at",
        )
    renamed = kernel_names(recording, _own_cpus(run, role))
    notes = recording.notes if renamed is not None else (*recording.notes, CPU_NUMBERS)
    with transaction.atomic():
        names = _store(run, role, kind, recording, shift_s, renamed or {})
        keep(run, f"{role}-{kind}.txt", text.encode())
        record(
            member, "run.recording", f"run #{run.number}", after={"kind": kind, "role": role, "channels": len(names)}
        )
    return ImportedRecording(names, round(shift_s, 3), round(last_s, 3), notes)


def _parts_of(run: Run) -> Collection[str]:
    """The roles of the run's hosts. A run that was imported says nothing of its own: a SUT and drivers."""
    if run.spec is not None:
        return RunSpec.model_validate(run.spec).hosts.keys()
    return {LOADED, *(driver_role(number) for number in range(MAX_DRIVERS))}


def _own_cpus(run: Run, role: str) -> list[str]:
    """The channels of CPUs that BenchHub sampled on this host; of an imported run those that its machine would have."""
    own = list(run.samples.filter(role=role, channel__startswith="cpu.").values_list("channel", flat=True))
    if own or role != "sut" or run.origin == Run.Origin.EXECUTED or run.sut_profile is None:
        return own
    return [f"cpu.{cpu}.busy_ratio" for cpu in sorted(parse_cpus(run.sut_profile.facts.get("cpu.online", "")))]


def _read(kind: str, text: str) -> Recording:
    if len(text) > MAX_RECORDING_CHARS:
        raise RequestError(f"A recording has at most {MAX_RECORDING_CHARS:,} characters.", field="text")
    try:
        return read_recording(kind, text)
    except ParseError as error:
        line = f" (line {error.line})" if error.line is not None else ""
        field = "kind" if "no reader" in error.message else "text"
        raise RequestError(f"{error.message}{line}. {error.hint}".strip(), field=field) from error


def _measured_s(run: Run) -> float:
    """How long the measured phase was planned; 0 when nobody knows."""
    phases = (run.spec or {}).get("workload", {}).get("phases", ())
    return float(phases[-1]["duration_s"]) if phases else 0.0


def _store(
    run: Run, role: str, kind: str, recording: Recording, shift_s: float, renamed: Mapping[str, str]
) -> tuple[str, ...]:
    """Store the channels, under other names where they have some, in place of those of an earlier recording."""
    SampleSeries.objects.filter(run=run, role=role, channel__startswith=f"{kind}.").delete()
    rows = {
        name: SampleSeries(
            run=run,
            role=role,
            channel=name,
            unit=line.unit,
            at_s=[round(at_s + shift_s, 3) for at_s in line.at_s],
            values=list(line.values),
        )
        for name, line in (
            (channel_name(kind, renamed.get(name, name)), line) for name, line in recording.channels.items()
        )
    }
    SampleSeries.objects.bulk_create(rows.values())
    return tuple(rows)
