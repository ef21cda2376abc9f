"""Which channels of a run say that something waited, that the machine was another one, or the load."""

from __future__ import annotations

import re
from dataclasses import dataclass

from experiments.analysis.explanations import Kind

LOAD_HOST = r"driver(-[0-9]+)?"
ANY_SERVER = r"(?!driver)[a-z].*"


@dataclass(frozen=True)
class Watched:
    """Channels whose change explains something: patterns of the host's role and of the channel.

    `events`: each value is one stop of so many milliseconds, which are added up per second of the measured time.
    """

    kind: Kind
    role: str
    channel: str
    more_is_worse: bool = True
    events: bool = False

    def matches(self, role: str, channel: str) -> bool:
        """Whether it is about this channel of this host."""
        return bool(re.fullmatch(self.role, role) and re.fullmatch(self.channel, channel))


WATCHED = (
    Watched("waiting", ANY_SERVER, r"pressure\..+"),
    Watched("waiting", ANY_SERVER, r"cpu\.iowait_ratio"),
    Watched("waiting", ANY_SERVER, r"disk\.(busiest_ratio|.+\.queue_count)"),
    Watched("waiting", ANY_SERVER, r"gc\.pause_ms", events=True),
    Watched("waiting", ANY_SERVER, r"jvm\.([0-9]+\.)?(stopped_ratio|allocated_bytes_per_s)"),
    Watched("waiting", ANY_SERVER, r"context_switches_per_s|processes\.(runnable|blocked)_count"),
    Watched("waiting", ANY_SERVER, r"cgroup\..+\.waited_ratio"),
    Watched("waiting", ANY_SERVER, r"cpu_quota\.throttled_ratio"),
    Watched("waiting", ANY_SERVER, r"swap\..+"),
    Watched("waiting", ANY_SERVER, r"faults\.major_per_s"),
    Watched("waiting", ANY_SERVER, r"tcp\.(repeated_segments|listen_.+|timeouts)_per_s"),
    Watched("waiting", ANY_SERVER, r"nginx\.(waiting_count|dropped_connections_per_s)"),
    Watched("waiting", ANY_SERVER, r"postgresql\.(waiting.*|.*_waiting.*|temporary_bytes_per_s)"),
    Watched("waiting", ANY_SERVER, r"postgresql\.cache_hit_ratio", more_is_worse=False),
    Watched("machine", ANY_SERVER, r"cpu\.steal_ratio"),
    Watched("machine", ANY_SERVER, r"cpu_set\.interrupt_ratio"),
    Watched("machine", ANY_SERVER, r"cpu_set\.mean_mhz", more_is_worse=False),
    Watched("machine", ANY_SERVER, r"frequency\.throttle_count"),
    Watched("load", LOAD_HOST, r"cpu_set\.busy_ratio"),
    Watched("load", ".*", r"load\.errors_per_s"),
    Watched("load", ".*", r"load\.active_threads"),
)
"""A channel that nobody has recorded is looked at by itself once a monitor gives it."""

PREFIXES = (
    *(
        "pressure.",
        "cpu.",
        "disk.",
        "gc.",
        "jvm.",
        "context_switches_per_s",
        "processes.",
        "cgroup.",
        "cpu_quota.",
        "swap.",
    ),
    *("faults.", "tcp.", "nginx.", "postgresql.", "cpu_set.", "frequency.", "load."),
)
"""How the channels above begin, for the database."""


def watched(role: str, channel: str) -> Watched | None:
    """What the channel says; None for one that explains nothing by itself."""
    return next((one for one in WATCHED if one.matches(role, channel)), None)
