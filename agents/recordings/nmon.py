"""The file that `nmon -f` writes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.recordings.base import (
    MEMORY,
    Channels,
    Recorder,
    Recording,
    RecordingKind,
    checked,
    cpu_columns,
    number,
    seconds_of_day,
)

MAX_SNAPSHOTS = 100_000

_SNAPSHOT = re.compile(r"T[0-9]{4,9}", re.ASCII)
_CPU = re.compile(r"CPU([0-9]{2,6})", re.ASCII)
_NET = re.compile(r"(.{1,60})-(read|write)(?:-KB)?/s")
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII)
_DATE = re.compile(r"([0-9]{1,2})-([A-Z]{3})-([0-9]{4})", re.ASCII)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DISK = {
    "DISKREAD": ("read_bytes_per_s", "bytes_per_s", 1024.0),
    "DISKWRITE": ("write_bytes_per_s", "bytes_per_s", 1024.0),
    "DISKXFER": ("transfers_per_s", "per_s", 1.0),
    "DISKBUSY": ("busy_ratio", "ratio", 0.01),
}
_WAYS = {"read": "rx", "write": "tx"}


def read_nmon(text: str) -> Recording:
    """The recording in an nmon file, sorted or as it was written. Raises ParseError.

    CPU 1 of nmon is CPU 0 here: nmon counts those that are online. Memory in use leaves out buffers and page cache.
    """
    about: dict[str, str] = {}
    columns: dict[str, list[str]] = {}
    times: dict[str, datetime] = {}
    rows: list[tuple[str, str, list[str]]] = []
    lines = checked(text, "nmon")
    if not any(line.startswith("AAA,progname,") for line in lines):
        raise ParseError("no nmon file (no line 'AAA,progname,...')", hint="Give the file of nmon -f.", line=1)
    for at, line in enumerate(lines, start=1):
        section, _, rest = line.strip().partition(",")
        values = rest.split(",")
        if section == "AAA":
            about.setdefault(values[0], ",".join(values[1:]))
        elif section == "ZZZZ":
            if len(times) >= MAX_SNAPSHOTS:
                raise ParseError(f"line {at}: more than {MAX_SNAPSHOTS} snapshots", line=at)
            times[values[0]] = _time(values, at)
        elif rest and not _SNAPSHOT.fullmatch(values[0]):
            columns[section] = values[1:]
        elif rest and not section.startswith(("BBB", "TOP", "UARG")):
            rows.append((section, values[0], values[1:]))
    if not times:
        raise ParseError("the nmon file has no snapshot (no line 'ZZZZ,T0001,...')", line=len(lines))
    started = min(times.values())
    channels = Channels()
    rows.sort(key=lambda row: times.get(row[1], started))
    for section, snapshot, texts in rows:
        if snapshot in times:
            named = dict(zip(columns.get(section, ()), texts, strict=False))
            _add(channels, section, (times[snapshot] - started).total_seconds(), named)
    return Recording("nmon", about.get("host", "").strip()[:120], started, channels.lines())


def _time(values: Sequence[str], at: int) -> datetime:
    """The moment of a ZZZZ line, by the host's clock."""
    clock, date = (values[1].strip(), values[2].strip()) if len(values) > 2 else ("", "")
    day = _DATE.fullmatch(date.upper())
    if _CLOCK.fullmatch(clock) and day and day[2] in _MONTHS:
        with suppress(ValueError, OverflowError):
            month, seconds = _MONTHS.index(day[2]) + 1, seconds_of_day(clock)
            return datetime(int(day[3]), month, int(day[1]), tzinfo=UTC) + timedelta(seconds=seconds)
    raise ParseError(f"line {at}: expected a time and a date like 09:07:20,20-NOV-2026", line=at)


def _add(channels: Channels, section: str, at_s: float, texts: Mapping[str, str]) -> None:
    values = {name: value for name, text in texts.items() if (value := number(text)) is not None}
    cpu = _CPU.fullmatch(section)
    if cpu or section == "CPU_ALL":
        names = {"User%": "user", "Sys%": "system", "Wait%": "iowait", "Steal%": "steal"}
        shares = {names[name]: value for name, value in values.items() if name in names}
        channels.add_cpu(f"cpu.{int(cpu[1]) - 1}" if cpu else "cpu", at_s, shares)
    elif section == "MEM" and "memtotal" in values and "memfree" in values:
        kept = values["memtotal"] - values["memfree"] - values.get("cached", 0.0) - values.get("buffers", 0.0)
        channels.add("memory.used_bytes", "bytes", at_s, kept * 2**20)
    elif section in ("NET", "NETPACKET"):
        what, factor = ("bytes", 1024.0) if section == "NET" else ("packets", 1.0)
        for name, value in values.items():
            if match := _NET.fullmatch(name):
                channel = f"network.{match[1]}.{_WAYS[match[2]]}_{what}_per_s"
                channels.add(channel, f"{what}_per_s", at_s, value * factor)
    elif section in _DISK:
        name_of, unit, factor = _DISK[section]
        for name, value in values.items():
            channels.add(f"disk.{name[:60]}.{name_of}", unit, at_s, value * factor)
    elif section == "PROC":
        for name, channel, unit in (
            ("Runnable", "processes.runnable", "count"),
            ("pswitch", "context_switches_per_s", "per_s"),
        ):
            channels.add(channel, unit, at_s, values.get(name))


# nmon puts itself into the background, so its output is followed until it is closed. What reads it outlives it, so that
# nothing that it wrote is lost.
_NMON = """nmon -F /dev/stdout -s "$1" -c "$2" | (trap '' TERM; exec cat)"""
_NETWORK = ChartGroup("recorded_network", "Network as it was recorded", 113, sometimes=True)
_PACKETS = ChartGroup("recorded_packets", "Network packets as they were recorded", 114, sometimes=True)
_DISK_BYTES = ChartGroup("disk_bytes", "Disks: what was read and written", 115, sometimes=True)
_TRANSFERS = ChartGroup("disk_transfers", "Disks: transfers", 116, sometimes=True)
_DISKS_BUSY = ChartGroup("disks_busy", "Disks: how busy", 117, sometimes=True)
_RUNNABLE = ChartGroup("runnable", "Processes that could run", 118, sometimes=True)
_SWITCHES = ChartGroup("switches", "Context switches", 119, sometimes=True)


def _command(interval_s: int, count: int) -> Command:
    return script(_NMON, str(interval_s), str(count))


NMON = RecordingKind(
    "nmon",
    read_nmon,
    (
        *cpu_columns("nmon"),
        ChannelKind(r"memory\.used_bytes", "bytes", "{host} nmon memory used", MEMORY),
        ChannelKind(r"network\.(.+)\.(rx|tx)_bytes_per_s", "bytes_per_s", "{host} nmon network {1} {2}", _NETWORK),
        ChannelKind(r"network\.(.+)\.(rx|tx)_packets_per_s", "packets_per_s", "{host} nmon packets {1} {2}", _PACKETS),
        ChannelKind(r"disk\.(.+)\.(read|write)_bytes_per_s", "bytes_per_s", "{host} disk {1} {2}", _DISK_BYTES),
        ChannelKind(r"disk\.(.+)\.transfers_per_s", "per_s", "{host} disk {1} transfers", _TRANSFERS),
        ChannelKind(r"disk\.(.+)\.busy_ratio", "ratio", "{host} disk {1} busy", _DISKS_BUSY),
        ChannelKind(r"processes\.runnable", "count", "{host} nmon processes runnable", _RUNNABLE),
        ChannelKind(r"context_switches_per_s", "per_s", "{host} nmon context switches", _SWITCHES),
    ),
    numbers_online=True,
    recorder=Recorder("nmon", "nmon", "{role}.nmon", "0.03 % of one core on a host with 2 CPUs", _command),
)
