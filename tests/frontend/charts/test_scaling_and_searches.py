"""What the charts of scaling and searches draw."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests import needs
from tests.frontend.charts.test_samples import CHARTS

POINT = {
    "cpus": 2,
    "instances": 1,
    "name": "two",
    "load": "16 connections",
    "rps": 190,
    "low": 185,
    "high": 195,
    "ideal": 200,
    "efficiency": 0.95,
    "efficiency_low": None,
    "efficiency_high": None,
    "super_linear": False,
    "repetitions": [],
}
FIRST = {**POINT, "cpus": 1, "name": "one", "rps": 100, "low": None, "high": None, "ideal": 100, "efficiency": 1}
SCALING = {
    "base_cpus": 1,
    "base_rps": 100,
    "end_cpus": 4,
    "law": None,
    "points": [FIRST, POINT],
    "curve": [],
    "peak": None,
}
LAW = {**SCALING, "law": "usl", "curve": [{"cpus": 1, "rps": 100, "low": 90, "high": 110}]}
TRIALS = [
    {"position": 1, "rate_rps": 1000, "phase": "bracket", "result": "pass", "reason": "", "run": 7},
    {"position": 2, "rate_rps": 4000, "phase": "bracket", "result": "fail", "reason": "errors", "run": 8},
]
SEARCH = {"low_rps": 1000, "high_rps": 4000, "over": False, "trials": TRIALS}
CURVE = {"label": "Latency, p99", "of": "requests/s offered", "objective_ms": 50, "points": []}
STEP = {"x": 990, "y": 12, "offered": 1000, "name": "#7"}


def called(module: str, function: str, given: dict[str, Any]) -> Any:
    script = (
        f"const m = await import({json.dumps((CHARTS / module).as_uri() + '.js')});"
        f"console.log(JSON.stringify(m.{function}(JSON.parse(process.argv[1]))));"
    )
    command = ["node", "--input-type=module", "-e", script, "--", json.dumps(given)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@needs.program("node")
def test_scaling_draws_points_the_ideal_line_and_the_law_with_its_band() -> None:
    points, ideal = called("scaling", "toDatasets", SCALING)
    assert [(p["x"], p["y"], p["yMin"], p["yMax"]) for p in points["data"]] == [(1, 100, 100, 100), (2, 190, 185, 195)]
    assert ideal["data"] == [{"x": 1, "y": 100}, {"x": 4, "y": 400}]
    roles = {one["role"]: one["data"] for one in called("scaling", "toDatasets", LAW)}
    assert roles["law"] == [{"x": 1, "y": 100}]
    assert (roles["upper"], roles["lower"]) == ([{"x": 1, "y": 110}], [{"x": 1, "y": 90}])
    assert called("scaling", "summary", LAW) == "Requests/s: 1 CPU 100, 2 CPUs 190; the ideal for 2 CPUs is 200."
    assert called("scaling", "toDatasets", {**SCALING, "points": []}) == []


@needs.program("node")
def test_efficiency_is_drawn_against_one() -> None:
    points, ideal, law = called("efficiency", "toDatasets", LAW)
    assert [p["y"] for p in points["data"]] == [1, 0.95]
    assert [p["y"] for p in ideal["data"]] == [1, 1]
    assert law["data"] == [{"x": 1, "y": 1}]
    assert called("efficiency", "table", LAW)["rows"][1][:3] == [2, 1, "95 %"]


@needs.program("node")
def test_trials_are_grouped_by_their_result() -> None:
    found = called("search", "toDatasets", SEARCH)
    assert [(one["label"], [p["x"] for p in one["data"]]) for one in found] == [("passed", [1000]), ("failed", [4000])]
    assert called("search", "summary", SEARCH) == (
        "2 trials: 1 passed, 1 failed. The limit lies between 1,000 and 4,000 requests/s (shaded)."
    )


@needs.program("node")
def test_the_curve_has_a_point_per_step_and_says_where_throughput_is_largest() -> None:
    assert called("curve", "toDatasets", CURVE) == []
    steps = {**CURVE, "points": [STEP, {**STEP, "x": 1200, "y": 80, "offered": 2000}]}
    assert [point["y"] for point in called("curve", "toDatasets", steps)[0]["data"]] == [12, 80]
    assert "80.0 ms at 1,200 requests/s, the largest throughput (2,000 requests/s offered)" in called(
        "curve", "summary", steps
    )
