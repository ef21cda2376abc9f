"""The trials of a tuning search as lines over parallel axes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from experiments.asking.tunings.reading import shown, trials_of
from experiments.models import Member
from frontend.charts.coordinates import coordinates_json
from tests.frontend.tuned import tuned


def test_each_trial_has_its_place_on_every_axis_and_none_where_it_does_not_count(
    admin: Member, stock: dict[str, Any]
) -> None:
    tuning = tuned(admin, stock, 40)
    rows = shown(tuning, trials_of(tuning))
    json = coordinates_json(tuning, rows)
    names = [axis["name"] for axis in json["axes"]]
    assert (len(names), len(json["lines"])) == (12, 40)
    assert json["axes"][2]["choices"] == ["Serial", "G1", "Z"]
    assert [axis["conditional"] for axis in json["axes"]] == [name == "region_mb" for name in names]
    for row, line in zip(rows, json["lines"], strict=True):
        config, places = row.trial.config, dict(zip(names, line["places"], strict=True))
        assert places["workers"] == pytest.approx((config["workers"] - 1) / 7)
        assert places["heap_mb"] == pytest.approx(math.log(config["heap_mb"] / 64) / math.log(64))
        assert places["collector"] == {"Serial": 0.0, "G1": 0.5, "Z": 1.0}[config["collector"]]
        assert (places["region_mb"] is None) == (config["collector"] != "G1")


def test_what_a_trial_came_to_is_told_and_only_measured_ones_have_a_figure(
    admin: Member, stock: dict[str, Any]
) -> None:
    tuning = tuned(admin, stock, 40)
    lines = coordinates_json(tuning, shown(tuning, trials_of(tuning)))["lines"]
    assert {line["outcome"] for line in lines} == {"measured", "limit", "crashed", "refused"}
    for line, trial in zip(lines, tuning.trials.all(), strict=True):
        assert (line["log_ratio"] is not None) == (trial.result == "ok")
        if trial.result == "ok":
            assert line["outcome"] == ("limit" if trial.config["heap_mb"] > 2048 else "measured")
    assert sum(line["is_default"] for line in lines) == 4
    assert tuning.best is not None
    assert [line["position"] for line in lines if line["is_best"]] == [
        trial.position + 1 for trial in tuning.trials.all() if trial.config == tuning.best["config"]
    ]
