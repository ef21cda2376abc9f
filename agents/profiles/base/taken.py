"""What whoever took a profile knows of it and its file does not say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TakenProfile:
    """How a profile was taken; None (of `role` and `form`: "") where that is not known, and the file counts.

    `profiler` is the tool, `role` the host's part in the run ("" = the server under test), `event` what was sampled,
    `engine` what sampled it. `window_s`: its start and end on the load's clock, in seconds from where measuring
    began. `cpu_time_s` is the CPU time of what was profiled and `requests` what was answered, both in that window.
    `clock_s`: what the clock of the file's times showed where measuring began; None: the first sample is taken for the
    window's start. `name`: by which the run knows it, its own by default; `form`: a key of
    `agents.profiles.PROFILE_FORMATS`, known by the content by default.
    """

    profiler: str
    role: str = ""
    event: str | None = None
    engine: str | None = None
    window_s: tuple[float, float] | None = None
    cpu_time_s: float | None = None
    requests: int | None = None
    samples: int | None = None
    lost_samples: int | None = None
    clock_s: float | None = None
    name: str = ""
    form: str = ""
