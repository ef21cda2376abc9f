"""What an nginx of a run counts: its stub_status, where the application serves that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

# Its server wrote down in its directory where it answers. A plain sh cannot connect; a reading must not hang for ever.
_SNIPPET = """\
  for one in {pids}; do
    [ -r "/proc/$one/cwd/stub_status.at" ] || continue
    read -r address port <"/proc/$one/cwd/stub_status.at"
    timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf "GET /stub_status HTTP/1.0\\r\\n\\r\\n" >&3 && cat <&3' \\
      "$address" "$port"
  done"""
_STATUS = re.compile(
    r"^Active connections: ([0-9]{1,20}) ?\r?\n"
    r"server accepts handled requests\r?\n ([0-9]{1,20}) ([0-9]{1,20}) ([0-9]{1,20}) ?\r?\n"
    r"Reading: ([0-9]{1,20}) Writing: ([0-9]{1,20}) Waiting: ([0-9]{1,20})",
    re.ASCII | re.MULTILINE,
)

_REQUESTS = ChartGroup("nginx", "nginx: requests", 94, sometimes=True)
_ACCEPTED = ChartGroup("nginx_accepted", "nginx: connections accepted and dropped", 95, sometimes=True)
_OPEN = ChartGroup("nginx_open", "nginx: open connections", 96, sometimes=True)
_STATES = ("reading", "writing", "waiting")


class NginxMonitor(Monitor):
    """What stub_status says of a server of the kind nginx, of several instances together; its own requests included."""

    kind = "nginx"
    cost = (
        "bash with one request, some 10 ms of CPU time, at each reading of a server of the kind nginx with stub_status"
    )
    channels = (
        ChannelKind(r"nginx\.handled_requests_per_s", "requests_per_s", "{host} nginx requests", _REQUESTS),
        ChannelKind(r"nginx\.(accepted|dropped)_connections_per_s", "connections_per_s", "{host} nginx {1}", _ACCEPTED),
        ChannelKind(r"nginx\.(open|reading|writing|waiting)_count", "count", "{host} nginx {1}", _OPEN),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return _SNIPPET.format(pids=" ".join(map(str, pids))) if pids else ""

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        """Nothing when the number of servers that answer has changed, or one of them began to count anew."""
        elapsed_s = now.at_s - before.at_s
        old, new = _counts(before.text), _counts(now.text)
        if elapsed_s <= 0 or not new or len(old) != len(new):
            return {}
        moved = [[b - a for a, b in zip(*pair, strict=True)][1:4] for pair in zip(old, new, strict=True)]
        if any(min(row) < 0 for row in moved) or any(row[0] < row[1] for row in moved):
            return {}
        accepted, handled, requests = (sum(column) for column in zip(*moved, strict=True))
        out = {
            Channel("nginx.handled_requests_per_s", "requests_per_s"): requests / elapsed_s,
            Channel("nginx.accepted_connections_per_s", "connections_per_s"): accepted / elapsed_s,
            Channel("nginx.dropped_connections_per_s", "connections_per_s"): (accepted - handled) / elapsed_s,
            Channel("nginx.open_count", "count"): float(sum(row[0] for row in new)),
        }
        for place, name in enumerate(_STATES, start=4):
            out[Channel(f"nginx.{name}_count", "count")] = float(sum(row[place] for row in new))
        return out


def _counts(text: str) -> list[list[int]]:
    """Open connections, accepts, handled, requests, reading, writing and waiting, of each server."""
    return [[int(number) for number in match.groups()] for match in _STATUS.finditer(text)]
