"""What `mpstat INTERVAL COUNT` prints, as text or with `-o JSON`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from agents.base.command import Command
from agents.base.errors import ParseError
from agents.formats.json_document import JsonObject, has_object, read_object
from agents.recordings.base import (
    Channels,
    Recorder,
    Recording,
    RecordingKind,
    checked,
    cpu_columns,
    number,
    seconds_of_day,
    since_first,
)

AS_MONTH_FIRST = "the date is read as month/day/year; set S_TIME_FORMAT=ISO for one that cannot be misread"

_FIRST = re.compile(r"Linux \S{1,80} \((\S{1,120})\)\s+(\S{6,20})\s+_\S{1,40}_\s+\([0-9]{1,6} CPU\)", re.ASCII)
_CLOCK = r"([0-9]{2}:[0-9]{2}:[0-9]{2}(?: [AP]M)?)"
_COLUMNS = re.compile(rf"{_CLOCK}\s+CPU((?:\s+%\w{{2,8}}){{5,12}})", re.ASCII)
_ROW = re.compile(rf"{_CLOCK}\s+(all|[0-9]{{1,5}})((?:\s+[0-9]{{1,3}}[.,][0-9]{{1,4}}){{5,12}})", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,5}", re.ASCII)
_GROUPS = {
    "user": ("usr", "user", "nice", "guest", "gnice"),
    "system": ("sys", "irq", "soft"),
    "interrupt": ("irq", "soft"),
    "iowait": ("iowait",),
    "steal": ("steal",),
}


def read_mpstat(text: str) -> Recording:
    """The recording in mpstat's text or JSON; its averages are left out. Raises ParseError."""
    return _read_json(text) if has_object(text) else _read_text(text)


def _read_text(text: str) -> Recording:
    lines = checked(text, "mpstat")
    first = next((match for line in lines[:20] if (match := _FIRST.fullmatch(line.strip()))), None)
    if first is None:
        raise ParseError(
            "no output of mpstat (no line 'Linux ... (host) date ... (N CPU)')",
            hint="Give what mpstat -P ALL 1 60 prints.",
            line=1,
        )
    names: list[str] = []
    rows: list[tuple[int, str, dict[str, float]]] = []
    for at, line in enumerate(lines, start=1):
        if columns := _COLUMNS.fullmatch(line.strip()):
            names = columns[2].replace("%", "").split()
        elif row := _ROW.fullmatch(line.strip()):
            values = [number(word) or 0.0 for word in row[3].split()]
            if len(values) != len(names):
                raise ParseError(f"line {at}: {len(values)} values for {len(names)} columns", line=at)
            rows.append((_seconds(row[1], at), row[2], dict(zip(names, values, strict=True))))
    return _recording(first[1], first[2], rows)


def _read_json(text: str) -> Recording:
    hosts = read_object(text, "mpstat").object("sysstat").objects("hosts")
    if len(hosts) != 1:
        raise ParseError(f"the output is of {len(hosts)} hosts, not of one", line=1)
    host = hosts[0]
    rows: list[tuple[int, str, dict[str, float]]] = []
    for interval in host.objects("statistics"):
        clock = _seconds(interval.text("timestamp"), 1)
        rows += [(clock, load.text("cpu"), _numbers(load)) for load in interval.objects("cpu-load")]
    return _recording(host.text("nodename"), host.text("date"), rows)


def _numbers(load: JsonObject) -> dict[str, float]:
    return {name: load.number(name) for name in load.names() if name != "cpu"}


def _seconds(clock: str, at: int) -> int:
    try:
        return seconds_of_day(clock)
    except ValueError:
        raise ParseError(f"line {at}: '{clock[:20]}' is no time of day", line=at) from None


def _recording(host: str, date: str, rows: Sequence[tuple[int, str, Mapping[str, float]]]) -> Recording:
    if not rows:
        raise ParseError("the output of mpstat has no interval", hint="Give mpstat an interval and a count.", line=1)
    channels = Channels()
    at_s = since_first(clock for clock, _, _ in rows)
    for when, (_, cpu, values) in zip(at_s, rows, strict=True):
        percents = {
            share: sum(values[name] for name in names if name in values)
            for share, names in _GROUPS.items()
            if any(name in values for name in names)
        }
        if cpu == "all" or _NUMBER.fullmatch(cpu):
            channels.add_cpu("cpu" if cpu == "all" else f"cpu.{int(cpu)}", when, percents)
    started, notes = _started(date, rows[0][0])
    return Recording("mpstat", host[:120], started, channels.lines(), notes)


def _started(date: str, clock: int) -> tuple[datetime | None, tuple[str, ...]]:
    for form, notes in (("%Y-%m-%d", ()), ("%m/%d/%y", (AS_MONTH_FIRST,)), ("%m/%d/%Y", (AS_MONTH_FIRST,))):
        try:
            return datetime.strptime(date, form).replace(tzinfo=UTC) + timedelta(seconds=clock), notes
        except (ValueError, OverflowError):
            continue
    return None, ()


def _command(interval_s: int, count: int) -> Command:
    return Command(("mpstat", "-P", "ALL", str(interval_s), str(count)))


MPSTAT = RecordingKind(
    "mpstat",
    read_mpstat,
    cpu_columns("mpstat"),
    recorder=Recorder("mpstat", "sysstat", "{role}-mpstat.txt", "0.01 % of one core on a host with 2 CPUs", _command),
)
