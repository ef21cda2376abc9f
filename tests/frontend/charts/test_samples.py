"""The figures behind the charts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.thinning import MAX_POINTS, thinned
from frontend.charts.channels import GROUPS, kinds_json
from frontend.charts.percentiles import percentile_points
from frontend.charts.sparkline import points_of
from frontend.charts.timeline import TIMELINE
from tests import needs

CHARTS = Path(__file__).resolve().parents[3] / "frontend" / "static" / "js" / "charts"
METRIC = {"name": "throughput_rps", "label": "Throughput", "unit": "requests/s", "higher_is_better": True}


def test_thinning_keeps_the_peaks_the_order_and_the_limit() -> None:
    values = [1.0] * 50_000
    values[12_345], values[40_000] = 99.0, -5.0

    at_s, kept = thinned([float(t) for t in range(50_000)], values)

    assert len(kept) <= MAX_POINTS
    assert (max(kept), min(kept)) == (99.0, -5.0)
    assert at_s == sorted(at_s)
    assert at_s[kept.index(99.0)] == 12_345.0


def test_short_lines_are_left_as_they_are() -> None:
    assert thinned([0.0, 1.0], [5.0, 6.0]) == ([0.0, 1.0], [5.0, 6.0])


def test_percentiles_are_read_from_the_reports_own_keys_in_order() -> None:
    figures = {"latency_p99.9_ms": 31.0, "latency_p50_ms": 2.0, "latency_mean_ms": 3.0, "throughput_rps": 5.0}

    assert percentile_points(figures) == [{"percentile": 50.0, "ms": 2.0}, {"percentile": 99.9, "ms": 31.0}]


@pytest.mark.parametrize("values, text", [([], ""), ([1.0], ""), ([1.0, 2.0], "2.0,26.0 118.0,2.0")])
def test_a_sparkline_fills_its_box(values: list[float], text: str) -> None:
    assert points_of(values) == text


CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "a line per channel, seconds on x": (
        "live",
        {
            "lines": [
                {"role": "sut", "channel": "cpu.busy_ratio", "unit": "ratio", "at_s": [0, 1], "values": [0.5, 0.6]}
            ]
        },
        [
            {
                "label": "SUT cpu busy",
                "data": [{"x": 0, "y": 0.5}, {"x": 1, "y": 0.6}],
                "driver": False,
                "unit": "ratio",
            }
        ],
    ),
    "a line has the title that its monitor gives it": (
        "live",
        {
            "channels": kinds_json(GROUPS["connections"]),
            "lines": [
                {
                    "role": "driver-2",
                    "channel": "tcp.opened_connections_per_s",
                    "unit": "connections_per_s",
                    "at_s": [0],
                    "values": [7],
                }
            ],
        },
        [{"label": "Driver 2 TCP connections opened", "data": [{"x": 0, "y": 7}], "driver": True}],
    ),
    "a dataset per line, per recipe in what was shared before lines had names": (
        "history",
        {
            "metric": METRIC,
            "points": [
                {"number": 1, "at": "1970-01-01T00:00:01+00:00", "value": 5, "recipe": "r", "line": "a"},
                {"number": 2, "at": "1970-01-01T00:00:02+00:00", "value": 6, "recipe": "b"},
            ],
        },
        [
            {"label": "a", "data": [{"x": 1000, "y": 5, "point": {"number": 1}}]},
            {"label": "b", "data": [{"x": 2000, "y": 6, "point": {"number": 2}}]},
        ],
    ),
    "nothing to draw without repetitions": (
        "ab",
        {"metric": METRIC, "variants": [{"name": "a", "mean": None, "low": None, "high": None, "repetitions": []}]},
        [],
    ),
    "panels by what a channel is, the whole machine only without a set of CPUs": (
        "timeline",
        {
            "channels": kinds_json(TIMELINE),
            "lines": [
                {"role": "sut", "channel": "cpu.busy_ratio", "unit": "ratio", "at_s": [0], "values": [0.1]},
                {"role": "sut", "channel": "cpu_set.busy_ratio", "unit": "ratio", "at_s": [0], "values": [0.9]},
                {"role": "driver", "channel": "load.throughput_rps", "unit": "requests/s", "at_s": [1], "values": [7]},
                {"role": "sut", "channel": "gc.pause_ms", "unit": "ms", "at_s": [2], "values": [30]},
            ],
        },
        [
            {"panel": "cpu", "driver": False, "points": False, "data": [{"x": 0, "y": 0.9}]},
            {"panel": "load", "driver": True, "points": False, "data": [{"x": 1, "y": 7}]},
            {"panel": "latency", "driver": False, "points": True, "data": [{"x": 2, "y": 30}]},
        ],
    ),
    "levels of a factor at equal distances, the metric by its value": (
        "sweep",
        {
            "metric": METRIC,
            "factors": [{"name": "cpus", "levels": [1, 2, 8]}, {"name": "gc", "levels": ["G1", "ZGC"]}],
            "variants": [
                {"name": "a", "values": [1, "G1"], "figure": 100},
                {"name": "b", "values": [2, "ZGC"], "figure": 200},
                {"name": "c", "values": [8, "ZGC"], "figure": 150},
                {"name": "not measured", "values": [8, "G1"], "figure": None},
            ],
        },
        [
            {"label": "a", "data": [{"x": 0, "y": 0}, {"x": 1, "y": 0}, {"x": 2, "y": 0}]},
            {"label": "b", "data": [{"x": 0, "y": 0.5}, {"x": 1, "y": 1}, {"x": 2, "y": 1}]},
            {"label": "c", "data": [{"x": 0, "y": 1}, {"x": 1, "y": 1}, {"x": 2, "y": 0.5}]},
        ],
    ),
    "the maximum stands one step after the last percentile": (
        "percentiles",
        {"runs": [{"name": "#1", "basis": "", "points": [{"percentile": 90, "ms": 4}, {"percentile": 100, "ms": 9}]}]},
        [{"label": "#1", "data": [{"x": 1, "y": 4, "percentile": 90}, {"x": 1.6, "y": 9, "percentile": 100}]}],
    ),
}


@needs.program("node")
@pytest.mark.parametrize("case", CASES)
def test_chart_modules_turn_json_into_datasets(case: str) -> None:
    module, given, expected = CASES[case]
    script = (
        f"const m = await import({json.dumps((CHARTS / module).as_uri() + '.js')});"
        "console.log(JSON.stringify(m.toDatasets(JSON.parse(process.argv[1]))));"
    )
    out = subprocess.run(
        ["node", "--input-type=module", "-e", script, "--", json.dumps(given)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert _matches(json.loads(out.stdout), expected), out.stdout


@needs.program("node")
def test_a_view_of_a_chart_is_written_and_read_in_the_address() -> None:
    script = (
        f"const m = await import({json.dumps((CHARTS / 'zoom.js').as_uri())});"
        "const texts = ['0~60', '-1.5~60~1000~2000', '60~0', '', 'a~b', '1~2~9~3'];"
        "console.log(JSON.stringify(texts.map(m.parse)));"
        "console.log(JSON.stringify(m.write(m.parse('-1.5~60.123456789~1000~2000'))));"
    )
    out = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=True
    ).stdout.splitlines()

    assert json.loads(out[0]) == [
        {"x": {"min": 0, "max": 60}, "y": None},
        {"x": {"min": -1.5, "max": 60}, "y": {"min": 1000, "max": 2000}},
        None,
        None,
        None,
        {"x": {"min": 1, "max": 2}, "y": None},
    ]
    assert json.loads(out[1]) == "-1.5~60.123457~1000~2000"


@needs.program("node")
def test_the_history_chart_says_its_marks_in_words() -> None:
    given = {
        "metric": METRIC,
        "points": [
            {
                "number": n,
                "at": f"1970-01-01T00:00:0{n}+00:00",
                "value": 5,
                "runs": [n, n + 10],
                "spread": 0.5,
                "line": "a",
                "validity": "valid",
            }
            for n in (1, 2)
        ],
        "changes": [{"number": 2, "change_ratio": -0.07, "state": "suspected", "triage": "untriaged"}],
        "levels": [{"recipe": "a", "value": 5}],
        "environments": [{"at": f"1970-01-01T00:00:0{n}+00:00", "text": "kernel"} for n in (1, 2)],
    }
    script = (
        f"const m = await import({json.dumps((CHARTS / 'history.js').as_uri())});"
        "const json = JSON.parse(process.argv[1]);"
        "console.log(JSON.stringify([m.summary(json), m.bands(json), m.table(json).rows]));"
    )
    out = subprocess.run(
        ["node", "--input-type=module", "-e", script, "--", json.dumps(given)],
        capture_output=True,
        text=True,
        check=True,
    )

    summary, bands, rows = json.loads(out.stdout)
    assert "Change points: −7.0 % with #2 (suspected, untriaged). Expected: 5." in summary
    assert bands == [{"from": 1000, "text": "kernel", "to": 2000}, {"from": 2000, "text": "kernel"}]
    assert [row[3:6] for row in rows] == [["0.50", 2, "−7.0 % suspected"], ["0.50", 2, ""]]


@needs.program("node")
def test_machines_measured_in_turn_are_lines_and_medians_of_their_own() -> None:
    given = {
        "metric": METRIC,
        "in_turn": True,
        "points": [
            {
                "number": n,
                "at": f"1970-01-01T00:00:0{n}+00:00",
                "value": 5 + 2 * (n % 2),
                "environment": "xa"[n % 2],
                "line": "imported",
            }
            for n in range(6)
        ],
    }
    script = (
        f"const m = await import({json.dumps((CHARTS / 'history.js').as_uri())});"
        "const json = JSON.parse(process.argv[1]);"
        "console.log(JSON.stringify([m.summary(json), m.toDatasets(json)]));"
    )
    argv = ["node", "--input-type=module", "-e", script, "--", json.dumps(given)]
    summary, lines = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    assert "6 points: 5 to 7, medians 5 of imported on x, 7 of imported on a; last #5 7." in summary
    assert [(line["label"], [point["y"] for point in line["data"]]) for line in lines] == [
        ("imported on x", [5, 5, 5]),
        ("imported on a", [7, 7, 7]),
    ]


def _matches(found: Any, expected: Any) -> bool:
    """Whether `found` has all of `expected`; numbers may differ by rounding."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(_matches(found.get(key), value) for key, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(_matches, found, expected))
    return bool(found == pytest.approx(expected) if isinstance(expected, int | float) else found == expected)
