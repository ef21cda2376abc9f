"""Profiles of other tools: how each form is read and written. A new one is a file, a line below, cases, a row."""

from __future__ import annotations

from agents.profiles.base.profile_format import ProfileFormat
from agents.profiles.collapsed import COLLAPSED
from agents.profiles.cpuprofile import CPUPROFILE
from agents.profiles.perf_script import PERF_SCRIPT
from agents.profiles.pprof.otlp_format import OTLP
from agents.profiles.pprof.pprof_format import PPROF
from agents.profiles.speedscope import SPEEDSCOPE

PROFILE_FORMATS: dict[str, ProfileFormat] = {
    form.kind: form for form in (COLLAPSED, CPUPROFILE, OTLP, PERF_SCRIPT, PPROF, SPEEDSCOPE)
}
