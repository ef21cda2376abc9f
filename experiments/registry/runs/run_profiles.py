"""The one intake of profiles of runs: read, folded, stored; what the profiler wrote is kept as a file of the run.

The recorder of a live run and the API both come here. CPU time and requests of a profile's window that nobody said are
taken from the run's own samples once it has some (`complete`).
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from django.db import transaction
from django.db.models import Q

from agents.base.errors import ParseError
from agents.profiles import PROFILE_FORMATS
from agents.profiles.base.profile import Profile
from agents.profiles.base.taken import TakenProfile
from agents.profiles.functions import functions_of
from agents.profiles.packing import pack, unpack
from agents.profiles.reading import GZIP, form_of, unpacked
from experiments.models import Run, RunProfile, SampleSeries
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.runs.artifacts import keep

MOST_PROFILES = 20
MAX_PROFILE_BYTES = 16 << 20
"""It is read in memory."""
MAX_NAME = 80
SUT = "sut"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9._]+")


def store_run_profile(run: Run, data: bytes, taken: TakenProfile, *, replace: bool = False) -> RunProfile:
    """Read and store a profile of the run. One of the same name is replaced, or refused: Conflict.

    RequestError names what cannot be read or does not fit together, before anything is stored.
    """
    form, profile = _read(data, taken.form)
    _check(taken)
    event, engine = taken.event or profile.about.event, taken.engine or profile.about.engine
    name = taken.name or _own_name(taken, event)
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"A name has 1 to {MAX_NAME} lower-case letters, digits, dots, dashes and underscores.", field="name"
        )
    window = taken.window_s or profile.about.window_s
    profile = on_the_load(profile, window, taken.clock_s)
    file = f"profile-{name}{PROFILE_FORMATS[form].suffix}{_packed(data, form)}"
    fields = {
        "role": "" if taken.role == SUT else taken.role,
        "profiler": taken.profiler[:40],
        "event": (event or "")[:60],
        "engine": (engine or "")[:60],
        "unit": profile.about.unit,
        "form": form,
        "start_s": window[0] if window else None,
        "end_s": window[1] if window else None,
        "cpu_time_s": taken.cpu_time_s,
        "requests": taken.requests,
        "samples": profile.about.samples if taken.samples is None else taken.samples,
        "lost_samples": profile.about.lost_samples if taken.lost_samples is None else taken.lost_samples,
        "unknown_ratio": functions_of(profile).unknown_ratio,
        "stacks": len(profile),
        "folded": pack(profile),
        "file": file,
    }
    with transaction.atomic():
        Run.objects.select_for_update(of=("self",), no_key=True).get(pk=run.pk)
        there = run.profiles.filter(name=name).first()
        if there is not None and not replace:
            raise Conflict(f"Run #{run.number} has a profile {name!r} already: give another name.", field="name")
        if there is None and run.profiles.count() >= MOST_PROFILES:
            raise RequestError(f"A run has at most {MOST_PROFILES} profiles.", field="name")
        keep(run, file, data, media_type="application/octet-stream")
        if there is not None and there.file != file:
            run.artifacts.filter(name=there.file).delete()
        stored, _ = RunProfile.objects.update_or_create(run=run, name=name, defaults=fields)
        complete(run)
        stored.refresh_from_db()
    return stored


def on_the_load(profile: Profile, window_s: tuple[float, float] | None, clock_s: float | None) -> Profile:
    """The profile with its times on the load's clock; without a window they count from its first sample."""
    if profile.slices is None:
        return profile
    if clock_s is None:
        clock_s = profile.slices.start_s - (window_s[0] if window_s else 0.0)
    start_s = profile.slices.start_s - clock_s
    return replace(profile, slices=replace(profile.slices, start_s=start_s))


def folded(stored: RunProfile) -> Profile:
    """The profile itself."""
    return unpack(bytes(stored.folded))


def profile_named(run: Run, name: str) -> RunProfile:
    """The run's profile of this name. NotFound."""
    found = run.profiles.filter(name=name).first()
    if found is None:
        raise NotFound(f"Run #{run.number} has no profile {name[:80]!r}.")
    return found


def complete(run: Run) -> None:
    """Say CPU time and requests of profiles that lack them, from the run's samples and figures, where these know."""
    for stored in run.profiles.filter(Q(cpu_time_s=None) | Q(requests=None)).defer("folded"):
        if not stored.counts_cpu:
            continue
        cpu_time_s, requests = _in_window(run, stored)
        if stored.cpu_time_s is None:
            stored.cpu_time_s = cpu_time_s
        if stored.requests is None:
            stored.requests = requests
        stored.save(update_fields=["cpu_time_s", "requests"])


def _in_window(run: Run, stored: RunProfile) -> tuple[float | None, int | None]:
    """CPU time and requests of the profile's window, both of one source: the samples, or without a window the whole
    measured time by the run's figures."""
    if stored.start_s is not None and stored.end_s is not None:
        length_s = stored.end_s - stored.start_s
        cpus = _mean(run, stored.role or SUT, "process.cpu_ratio", stored.start_s, stored.end_s)
        rate = _mean(run, "", "load.throughput_rps", stored.start_s, stored.end_s)
        if rate is None:
            rate = run.metrics.get("throughput_rps")
        return (
            None if cpus is None else cpus * length_s,
            None if rate is None else round(rate * length_s),
        )
    cost_ms = run.metrics.get("cpu_ms_per_request") if not stored.role else None
    requests = stored.requests
    if requests is None and run.throughput_rps and run.spec:
        requests = round(run.throughput_rps * run.spec["workload"]["phases"][-1]["duration_s"])
    return (None if cost_ms is None or requests is None else cost_ms * requests / 1000), requests


def _mean(run: Run, role: str, channel: str, start_s: float, end_s: float) -> float | None:
    """The mean of a channel's samples in the window; of any role where `role` is "". None: there are none."""
    found = SampleSeries.objects.filter(run=run, channel=channel)
    row = (found.filter(role=role) if role else found).order_by("pk").first()
    if row is None:
        return None
    at_s, values = np.array(row.at_s), np.array(row.values)
    inside = values[(at_s > start_s) & (at_s <= end_s)]
    return float(inside.mean()) if len(inside) else None


def _read(data: bytes, form: str) -> tuple[str, Profile]:
    """The form's name and the profile. RequestError names the file's fault."""
    if len(data) > MAX_PROFILE_BYTES:
        raise RequestError(
            f"The profile has {len(data) / 2**20:.1f} MB; at most {MAX_PROFILE_BYTES >> 20} MB are stored. Compress "
            "it with gzip, fold it first (collapsed stacks), or profile for a shorter time.",
            field="file",
        )
    if form and form not in PROFILE_FORMATS:
        known = ", ".join(sorted(PROFILE_FORMATS))
        raise RequestError(f"There is no form of profile called {form[:60]!r}. Known forms: {known}.", field="form")
    try:
        text = unpacked(data)
        kind = form or form_of(text).kind
        return kind, PROFILE_FORMATS[kind].read(text)
    except ParseError as error:
        line = f" (line {error.line})" if error.line is not None else ""
        said = f"{error.message[:1].upper()}{error.message[1:]}{line}. {error.hint}".strip()
        raise RequestError(said, field="file") from error


def _check(taken: TakenProfile) -> None:
    """RequestError: figures that cannot be."""
    if taken.window_s is not None and not -3600 <= taken.window_s[0] < taken.window_s[1] <= 10 * 86400:
        raise RequestError("The window must end after it starts; both count from where measuring began.", field="end_s")
    if taken.cpu_time_s is not None and not 0 < taken.cpu_time_s < 1e12:
        raise RequestError("CPU time is a number of seconds above 0.", field="cpu_time_s")
    for field in ("requests", "samples", "lost_samples"):
        value = getattr(taken, field)
        least = 1 if field == "requests" else 0
        if value is not None and not least <= value < 2**62:
            raise RequestError(f"{field} is a number of at least {least}.", field=field)


def _own_name(taken: TakenProfile, event: str | None) -> str:
    parts = ("" if taken.role == SUT else taken.role, taken.profiler, event or "")
    name = "-".join(_NOT_IN_A_NAME.sub("-", part.lower()).strip("-._") for part in parts if part)
    return name[:MAX_NAME].strip("-._") or "profile"


def _packed(data: bytes, form: str) -> str:
    return ".gz" if data.startswith(GZIP) and not PROFILE_FORMATS[form].suffix.endswith(".gz") else ""
