"""What each disk did and how long requests stood in its queue, from /proc/diskstats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

SECTOR_BYTES = 512
"""The kernel counts in sectors of this size, whatever the disk has."""

_LINE = re.compile(r"\s*[0-9]{1,7}\s+[0-9]{1,10}\s+(\S{1,60})((?:\s+[0-9]{1,20}){11,30})\s*", re.ASCII)
_PART = re.compile(r"((.*?)p?)[0-9]+", re.ASCII)
_IN_MEMORY = re.compile(r"(?:loop|ram|zram)[0-9]+", re.ASCII)
_READS, _READ_SECTORS, _WRITES, _WRITTEN_SECTORS, _BUSY_MS, _WAITED_MS = 0, 2, 4, 6, 9, 10

_BUSY = ChartGroup("disk_busy", "Disks: share of time with requests", 56)
_BYTES = ChartGroup("disk", "Disks: bytes", 57)
_REQUESTS = ChartGroup("disk_requests", "Disks: requests", 58)
_QUEUE = ChartGroup("disk_queue", "Disks: requests under way", 59)


class DiskMonitor(Monitor):
    """Rates of each disk that has ever done anything; its partitions are counted in it, disks in memory are left out.

    A disk that serves many requests at once may be busy all the time and have room for more: see its queue.
    """

    kind = "disk"
    cost = "one small file per reading, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(r"disk\.busiest_ratio", "ratio", "{host} busiest disk", _BUSY, compared="Busiest disk"),
        ChannelKind(r"disk\.(.+)\.busy_ratio", "ratio", "{host} disk {1} with requests", _BUSY),
        ChannelKind(r"disk\.(.+)\.(read|write)_bytes_per_s", "bytes_per_s", "{host} disk {1} {2} bytes", _BYTES),
        ChannelKind(
            r"disk\.(.+)\.(read|write)_requests_per_s", "requests_per_s", "{host} disk {1} {2} requests", _REQUESTS
        ),
        ChannelKind(r"disk\.(.+)\.queue_count", "count", "{host} disk {1} requests under way", _QUEUE),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/diskstats"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        """Means over the time between the readings; `queue_count` is how many requests were under way."""
        elapsed_s = now.at_s - before.at_s
        if elapsed_s <= 0:
            return {}
        out: dict[Channel, float] = {}
        busiest: list[float] = []
        old = _counters(before.text)
        for disk, counters in _counters(now.text).items():
            moved = [n - was for n, was in zip(counters, old.get(disk, ()), strict=False)]
            if not moved or min(moved) < 0 or not any(counters):
                continue  # it came, was made anew, or its counters began again
            busy = min(1.0, moved[4] / 1000 / elapsed_s)
            busiest.append(busy)
            out[Channel(f"disk.{disk}.busy_ratio", "ratio")] = busy
            out[Channel(f"disk.{disk}.queue_count", "count")] = moved[5] / 1000 / elapsed_s
            for way, requests, sectors in (("read", moved[0], moved[1]), ("write", moved[2], moved[3])):
                out[Channel(f"disk.{disk}.{way}_requests_per_s", "requests_per_s")] = requests / elapsed_s
                out[Channel(f"disk.{disk}.{way}_bytes_per_s", "bytes_per_s")] = sectors * SECTOR_BYTES / elapsed_s
        if busiest:
            out[Channel("disk.busiest_ratio", "ratio")] = max(busiest)
        return out


def _counters(text: str) -> dict[str, tuple[int, ...]]:
    """Requests and sectors read, the same written, milliseconds with requests and of all requests, by disk."""
    lines = [match for line in text.splitlines() if (match := _LINE.fullmatch(line))]
    names = {match[1] for match in lines}
    found = {}
    for match in lines:
        if _IN_MEMORY.fullmatch(match[1]) or _disks_of(match[1]) & names:
            continue
        numbers = [int(n) for n in match[2].split()]
        wanted = (_READS, _READ_SECTORS, _WRITES, _WRITTEN_SECTORS, _BUSY_MS, _WAITED_MS)
        found[match[1]] = tuple(numbers[i] for i in wanted)
    return found


def _disks_of(name: str) -> set[str]:
    """What the disk would be called of which this is a partition: sda of sda1, nvme0n1 of nvme0n1p2."""
    match = _PART.fullmatch(name)
    return {match[1], match[2]} if match else set()
