"""What `top -b` prints: a frame per interval, of processes or (with -H) of threads."""

from __future__ import annotations

import re
from collections import defaultdict

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.base.errors import ParseError
from agents.recordings.base import MEMORY, Channels, Recording, RecordingKind, checked, cpu_columns, number, since_first

ONE_FRAME = (
    "there is one frame only, and the first frame of top counts from the start: these are no figures of a moment"
)
MAX_NAMES = 30

_FRAME = re.compile(r"top - ([0-9]{2}):([0-9]{2}):([0-9]{2}) up .*")
_KIND = re.compile(r"(Tasks|Threads): .*")
_CPU = re.compile(r"%Cpu\(s\):(.*)")
_SHARE = re.compile(r"([0-9]{1,3}[.,][0-9]) (us|sy|ni|id|wa|hi|si|st)\b", re.ASCII)
_TOTAL = re.compile(r"(Ki|Mi|Gi|Ti)B Mem ?: +([0-9]{1,15}[.,][0-9]) total,.*", re.ASCII)
_AVAILABLE = re.compile(r"(Ki|Mi|Gi|Ti)B Swap ?: .* ([0-9]{1,15}[.,][0-9]) avail Mem.*", re.ASCII)
_BYTES_PER = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def read_top(text: str) -> Recording:
    """The recording in top's batch output; the first of several frames is left out. Raises ParseError.

    1.0 is one CPU fully used. Threads (or processes) of one name are added up, the 30 busiest names of each frame.
    """
    frames: list[tuple[int, int]] = []
    lines = checked(text, "top")
    for at, line in enumerate(lines):
        if match := _FRAME.fullmatch(line.strip()):
            hours, minutes, seconds = (int(part) for part in match.groups())
            frames.append((at, hours * 3600 + minutes * 60 + seconds))
    if not frames:
        raise ParseError("no output of top (no line 'top - HH:MM:SS up ...')", hint="Give what top -b prints.", line=1)
    shown = frames[1:] or frames
    ends = [*(at for at, _ in shown[1:]), len(lines)]
    channels = Channels()
    for (start, _), end, at_s in zip(shown, ends, since_first(clock for _, clock in shown), strict=True):
        _add(channels, at_s, lines[start:end], start + 1)
    notes = () if len(frames) > 1 else (ONE_FRAME,)
    return Recording("top", "", None, channels.lines(), notes)


def _add(channels: Channels, at_s: float, lines: list[str], first: int) -> None:
    kind, total_bytes, columns = "", None, list[str]()
    spent: defaultdict[str, float] = defaultdict(float)
    count: defaultdict[str, int] = defaultdict(int)
    for at, raw in enumerate(lines, start=first):
        line = raw.strip()
        if match := _KIND.fullmatch(line):
            kind = "threads" if match[1] == "Threads" else "processes"
        elif match := _CPU.fullmatch(line):
            shares = {name: number(value) or 0.0 for value, name in _SHARE.findall(match[1])}
            _cpu(channels, at_s, shares)
        elif match := _TOTAL.fullmatch(line):
            total_bytes = (number(match[2]) or 0.0) * _BYTES_PER[match[1]]
        elif match := _AVAILABLE.fullmatch(line):
            available = (number(match[2]) or 0.0) * _BYTES_PER[match[1]]
            channels.add("memory.available_bytes", "bytes", at_s, available)
            channels.add("memory.used_bytes", "bytes", at_s, None if total_bytes is None else total_bytes - available)
        elif line.startswith("PID ") and "%CPU" in line.split() and line.endswith("COMMAND"):
            columns = line.split()
        elif line and columns:
            cells = line.split(None, len(columns) - 1)
            cpu = number(cells[columns.index("%CPU")]) if len(cells) == len(columns) else None
            if cpu is None or cpu < 0:
                raise ParseError(f"line {at}: expected a row of top, but found '{line[:60]}'", line=at)
            spent[cells[-1][:60]] += cpu / 100
            count[cells[-1][:60]] += 1
    for name in sorted(spent, key=lambda name: (-spent[name], name))[:MAX_NAMES]:
        channels.add(f"{kind or 'processes'}.{name}.cpu_ratio", "ratio", at_s, spent[name])
        channels.add(f"{kind or 'processes'}.{name}.count", "count", at_s, float(count[name]))


def _cpu(channels: Channels, at_s: float, shares: dict[str, float]) -> None:
    if {"us", "sy", "id"} <= shares.keys():
        interrupt = shares.get("hi", 0.0) + shares.get("si", 0.0)
        percents = {
            "user": shares["us"] + shares.get("ni", 0.0),
            "system": shares["sy"] + interrupt,
            "interrupt": interrupt,
            "iowait": shares.get("wa", 0.0),
            "steal": shares.get("st", 0.0),
        }
        channels.add_cpu("cpu", at_s, percents)


_CPUS = ChartGroup("recorded_threads", "CPU of processes and threads as top showed it", 113, sometimes=True)
_COUNTS = ChartGroup("recorded_counts", "Processes and threads as top counted them", 114, sometimes=True)

TOP = RecordingKind(
    "top",
    read_top,
    (
        *cpu_columns("top"),
        ChannelKind(r"memory\.(used|available)_bytes", "bytes", "{host} top memory {1}", MEMORY),
        ChannelKind(r"(processes|threads)\.(.+)\.cpu_ratio", "ratio", "{host} top {1} {2} cpu", _CPUS),
        ChannelKind(r"(processes|threads)\.(.+)\.count", "count", "{host} top {1} {2}", _COUNTS),
    ),
)
