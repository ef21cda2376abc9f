"""The in-run lines of a run, and of several runs over each other, as the chart modules draw them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.analysis.thinning import thinned
from experiments.asking.prometheus.queries import PREFIX
from experiments.models import Run, SampleSeries
from frontend.charts.channels import GROUPS, Group, kinds_json

MOST_LINES = 24
LIVE_READINGS = 8000
"""About an hour of a live run, one reading per second and host; once it has ended the whole series is stored."""


def groups_of(run: Run) -> dict[str, Group]:
    """The groups for which this run may have lines; of an imported one those that it has.

    What is of no known kind has a group for each unit: what a Prometheus was asked for, and what came with figures.
    """
    channels = dict(SampleSeries.objects.filter(run=run).order_by("channel").values_list("channel", "unit"))
    found = {
        name: group
        for name, group in GROUPS.items()
        if not group.sometimes or any(re.search(group.pattern, channel) for channel in channels)
    }
    read = {channel: unit for channel, unit in channels.items() if channel.startswith(PREFIX)}
    of_prometheus = _by_unit("prometheus", "Prometheus", read)
    if run.origin != Run.Origin.IMPORTED or not channels:
        return found | of_prometheus
    seen = {name: group for name, group in found.items() if any(re.search(group.pattern, one) for one in channels)}
    known = [*seen.values(), *of_prometheus.values()]
    others = {
        channel: unit
        for channel, unit in channels.items()
        if not any(re.search(group.pattern, channel) for group in known)
    }
    return seen | of_prometheus | _by_unit("reported", "Reported", others)


def _by_unit(key: str, label: str, channels: Mapping[str, str]) -> dict[str, Group]:
    """A group for each unit of these channels."""
    by_unit: dict[str, list[str]] = {}
    for channel, unit in channels.items():
        by_unit.setdefault(unit, []).append(re.escape(channel))
    groups = (
        Group(f"{label}, in {unit}" if unit else label, f"^({'|'.join(names)})$") for unit, names in by_unit.items()
    )
    return {f"{key}-{number}": group for number, group in enumerate(groups)}


@dataclass(frozen=True)
class Part:
    """A part of the time axis, in seconds since measuring began."""

    from_s: float
    to_s: float


def part_in(query: Mapping[str, str]) -> Part | None:
    """The part that `from_s` and `to_s` name; None when they name none, which is the whole."""
    try:
        part = Part(float(query.get("from_s", "")), float(query.get("to_s", "")))
    except ValueError:
        return None
    return part if part.from_s < part.to_s else None


def run_samples_json(
    run: Run, group: Group, t0_unix_s: float | None, duration_s: int | None, part: Part | None = None
) -> dict[str, Any]:
    """The in-run lines of one group: from the stored series, or while the run is live from its events."""
    stored = list(SampleSeries.objects.filter(run=run, channel__regex=group.pattern).order_by("role", "channel"))
    stored.sort(key=lambda line: line.role != "sut")
    lines, zero_unix_s, seq = [channel_json(line, part) for line in stored], t0_unix_s, run.last_seq
    if not lines:
        lines, zero_unix_s, seq = _live_channels(run, group, t0_unix_s)
    busiest = sorted(lines, key=lambda line: -sum(line["values"]) / max(len(line["values"]), 1))[:MOST_LINES]
    return {
        "label": group.label,
        "pattern": group.pattern,
        "channels": kinds_json(group),
        "t0_unix_s": t0_unix_s,
        "zero_unix_s": zero_unix_s,
        "seq": seq,
        "duration_s": duration_s,
        "live": run.is_live,
        "left_out": len(lines) - len(busiest),
        "thinned": is_thinned(stored, lines),
        "lines": [line for line in lines if line in busiest] if len(lines) > MOST_LINES else lines,
    }


def is_thinned(series: Sequence[SampleSeries], lines: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the whole series have more points than the lines made of them."""
    return sum(len(one.values) for one in series) > sum(len(line["values"]) for line in lines)


def channel_json(series: SampleSeries, part: Part | None = None, **more: object) -> dict[str, Any]:
    """One in-run line or a part of it with a point on either side, thinned out to at most 2,000 points."""
    first, end = 0, len(series.at_s)
    if part is not None:
        first = max(0, bisect_left(series.at_s, part.from_s) - 1)
        end = bisect_right(series.at_s, part.to_s) + 1
    at_s, values = thinned(series.at_s[first:end], series.values[first:end])
    return {"role": series.role, "channel": series.channel, "unit": series.unit, "at_s": at_s, "values": values, **more}


def _live_channels(run: Run, group: Group, t0_unix_s: float | None) -> tuple[list[dict[str, Any]], float | None, int]:
    """The lines, the time that is their zero, and the last event in them: the browser goes on from there."""
    wanted = re.compile(group.pattern)
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    newest = run.events.filter(kind="samples").order_by("-seq").values_list("seq", "payload")[:LIVE_READINGS]
    rows = list(reversed(newest))
    zero = t0_unix_s if t0_unix_s is not None or not rows else rows[0][1]["at_unix_s"]
    for _, payload in rows:
        for channel, (unit, value) in payload["values"].items():
            if not wanted.search(channel):
                continue
            empty = {"role": payload["role"], "channel": channel, "unit": unit, "at_s": [], "values": []}
            line = lines.setdefault((payload["role"], channel), empty)
            line["at_s"].append(round(payload["at_unix_s"] - zero, 3))
            line["values"].append(value)
    for line in lines.values():
        line["at_s"], line["values"] = thinned(line["at_s"], line["values"])
    return list(lines.values()), zero, rows[-1][0] if rows else 0


def run_name(run: Run) -> str:
    return f"#{run.number} {run.variant.name if run.variant else run.recipe.name if run.recipe else run.origin}"


def overlay_json(runs: Sequence[Run], channel: str, part: Part | None = None) -> dict[str, Any]:
    """One channel of both hosts for several runs over each other, aligned at the start of measuring."""
    by_run = {run.pk: run for run in runs}
    series = SampleSeries.objects.filter(run__in=runs, channel=channel).order_by("run__number", "role")
    order = {run.pk: position for position, run in enumerate(runs)}
    found = sorted(series, key=lambda line: (order[line.run_id], line.role != "sut"))
    lines = [_overlay_line(line, by_run[line.run_id], part) for line in found]
    return {"lines": lines, "thinned": is_thinned(found, lines)}


def _overlay_line(line: SampleSeries, run: Run, part: Part | None) -> dict[str, Any]:
    return channel_json(
        line, part, run=run.number, name=f"{run_name(run)}, {'SUT' if line.role == 'sut' else line.role}"
    )
