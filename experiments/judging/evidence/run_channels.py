"""The channels of a run that no monitor and no recording makes: those of its load, and of the server's JVM."""

from __future__ import annotations

from agents.base.channel_kind import ChannelKind, ChartGroup

_REQUESTS = ChartGroup("requests", "Requests and errors per second", 120, sometimes=True)
_LATENCY = ChartGroup("latency", "Latency, mean of each second", 130, sometimes=True)
_THREADS = ChartGroup("active_threads", "Threads of the load tool at work", 135, sometimes=True)
_GC = ChartGroup("gc", "Pauses of the garbage collector", 140, sometimes=True)

RUN_CHANNELS: tuple[ChannelKind, ...] = (
    ChannelKind(r"load\.throughput_rps", "requests/s", "Throughput", _REQUESTS, panel="load"),
    ChannelKind(r"load\.errors_per_s", "errors/s", "Errors per second", _REQUESTS, panel="load"),
    ChannelKind(r"load\.latency_mean_ms", "ms", "Mean latency", _LATENCY, panel="latency"),
    ChannelKind(r"load\.active_threads", "threads", "{host} load active threads", _THREADS),
    ChannelKind(r"gc\.pause_ms", "ms", "GC pauses", _GC, panel="latency", events="pauses of the garbage collector"),
)
