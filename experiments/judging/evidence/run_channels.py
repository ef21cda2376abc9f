"""The channels of a run that no monitor and no recording makes: those of its load, and of the server's JVM."""

from __future__ import annotations

from agents.base.channel_kind import ChannelKind, ChartGroup

_REQUESTS = ChartGroup("requests", "Requests and errors per second", 120, sometimes=True)
_LATENCY = ChartGroup("latency", "Latency, mean of each second", 130, sometimes=True)
_THREADS = ChartGroup("active_threads", "Threads of the load tool at work", 135, sometimes=True)
_GC = ChartGroup("gc", "Pauses of the garbage collector", 140, sometimes=True)
_HEAP = ChartGroup("jvm_heap", "JVM: heap in use after each collection", 141, sometimes=True)
_ALLOCATED = ChartGroup("jvm_allocated", "JVM: allocated per second", 142, sometimes=True)
_SAFEPOINTS = ChartGroup("jvm_safepoints", "JVM: safepoints per second", 143, sometimes=True)
_STOPPED = ChartGroup("jvm_stopped", "JVM: share of the time at safepoints, and on the way there", 144, sometimes=True)


def _jvm(name: str, unit: str, words: str, group: ChartGroup) -> tuple[ChannelKind, ChannelKind]:
    """The channel of a single JVM, which runs can be compared by, and that of each of several instances."""
    return (
        ChannelKind(rf"jvm\.{name}", unit, f"{{host}} {words}", group, compared=f"JVM: {words}"),
        ChannelKind(rf"jvm\.([0-9]+)\.{name}", unit, f"{{host}} {words}, instance {{1}}", group),
    )


RUN_CHANNELS: tuple[ChannelKind, ...] = (
    ChannelKind(r"load\.throughput_rps", "requests/s", "Throughput", _REQUESTS, panel="load"),
    ChannelKind(r"load\.errors_per_s", "errors/s", "Errors per second", _REQUESTS, panel="load"),
    ChannelKind(r"load\.latency_mean_ms", "ms", "Mean latency", _LATENCY, panel="latency"),
    ChannelKind(r"load\.active_threads", "threads", "{host} load active threads", _THREADS),
    ChannelKind(r"gc\.pause_ms", "ms", "GC pauses", _GC, panel="latency", events="pauses of the garbage collector"),
    *_jvm("heap_after_gc_bytes", "bytes", "heap after GC", _HEAP),
    *_jvm("allocated_bytes_per_s", "bytes_per_s", "allocated", _ALLOCATED),
    *_jvm("safepoints_per_s", "safepoints_per_s", "safepoints", _SAFEPOINTS),
    *_jvm("stopped_ratio", "ratio", "at safepoints", _STOPPED),
    *_jvm("reaching_safepoint_ratio", "ratio", "on the way to safepoints", _STOPPED),
)


def unit_of(channel: str) -> str:
    """The unit of one of these channels; KeyError for another one."""
    for kind in RUN_CHANNELS:
        if kind.matches(channel):
            return kind.unit
    raise KeyError(channel)
