"""The game of tuning: lab and scores are what docs/tuning.md says, and figures of invalid runs change nothing."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.tuning import __main__ as bench
from bench.tuning.aims import aims
from bench.tuning.game import Claim, Policy, Result, play
from bench.tuning.own import BenchHub
from bench.tuning.scores import score, summarised
from bench.tuning.smac_peer import MISSING, is_installed
from bench.tuning.synthetic import SYNTHETIC, synthetic
from bench.tuning.tables import measured
from bench.tuning.world import CRASH_HOURS, Lab
from experiments.analysis.tuning.space import Config
from tests.needs import require

BUDGET = 30


def played(lab: Lab, policy: Policy, budget: int = BUDGET) -> tuple[Claim, list[Result]]:
    return play(lab, policy, budget, seed=1, noise=np.random.default_rng(2))


@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_system_has_an_admissible_default_and_the_null_ones_nothing_better(name: str) -> None:
    lab = Lab(synthetic(name, 4), 4)
    truth, default = lab.truth, lab.table.default
    assert truth.admissible[default]
    assert truth.gain[default] == pytest.approx(0, abs=1e-12)
    assert truth.limit_ms == pytest.approx(1.10 * truth.p99_ms[default])
    if name.startswith("null"):
        assert truth.best_gain <= 1e-9
    else:
        assert truth.best_gain > 0.01
        assert truth.gain.min() < 0


def test_the_mean_of_many_runs_on_all_hosts_is_the_truth() -> None:
    lab, source = Lab(synthetic("categorical", 2), 2), np.random.default_rng(5)
    unstable = int(np.argmax(lab.slow.mean(axis=1) * (lab.crashes.mean(axis=1) < 0.1)))
    default = lab.table.default

    def mean(place: int) -> float:
        figures = []
        for number in range(6000):
            host, hours = number % lab.table.hosts, 24 * 15 * source.random()
            result = lab.measure(lab.table.configs[place], host, hours, source)
            if result.status == "ok" and result.figure is not None:
                figures.append(result.figure)
        return float(np.mean(figures))

    ratio = mean(unstable) / mean(default)
    gain = ratio - 1 if lab.table.higher_is_better else 1 / ratio - 1
    assert lab.slow[unstable].max() > 0
    assert gain == pytest.approx(lab.truth.gain[unstable], abs=0.01)


def test_the_seed_decides_a_game() -> None:
    first, second = (played(Lab(synthetic("steep", 3), 3), BenchHub()) for _ in range(2))
    assert first == second


class WrongWhenInvalid(Lab):
    """The same lab, whose invalid runs have other figures."""

    def measure(self, config: Config, host: int, time_hours: float, source: np.random.Generator) -> Result:
        result = super().measure(config, host, time_hours, source)
        return replace(result, figure=1e6, p99_ms=1e-6) if result.status == "invalid" else result


def test_figures_of_invalid_runs_change_nothing() -> None:
    table = synthetic("interacting", 1)
    claim, history = played(Lab(table, 1), BenchHub(), 40)
    again, other = played(WrongWhenInvalid(table, 1), BenchHub(), 40)
    assert any(one.status == "invalid" for one in history)
    assert claim == again
    assert [one.config for one in history] == [one.config for one in other]


@pytest.mark.parametrize("name", bench.POLICIES)
def test_every_policy_keeps_the_budget_and_repeats_invalid_runs(name: str) -> None:
    if name == "smac":
        require(is_installed(), "smac", "pip install smac==2.4.1")
    lab = Lab(synthetic("steep", 6), 6)
    claim, history = played(lab, bench.POLICIES[name]())
    assert 0 < len(history) <= BUDGET
    assert all(0 <= one.host < lab.table.hosts for one in history)
    assert history[0].config == lab.table.configs[lab.table.default]
    if name != bench.OWN:
        for one, following in itertools.pairwise(history):
            assert one.status != "invalid" or following.config == one.config
    assert claim.config is None or claim.gain > -1


def test_claims_are_scored_against_the_truth() -> None:
    lab = Lab(synthetic("interacting", 1), 1)
    truth, default = lab.truth, lab.table.default
    best = int(np.argmax(np.where(truth.admissible, truth.gain, -1)))
    worst = int(np.argmin(truth.gain))
    over = int(np.argmax(truth.p99_ms))
    gain = float(truth.gain[best])
    crash = Result(lab.table.configs[worst], 0, 0.0, CRASH_HOURS, "crash", None, None)

    right = score(lab, Claim(lab.table.configs[best], gain, gain - 0.01, gain + 0.01), [crash])
    assert (right.error, right.covered, right.regret, right.violation) == pytest.approx((0, 1, 0, False))
    assert (right.runs, right.crashes, right.host_hours) == (1, 1, CRASH_HOURS)

    too_much = score(lab, Claim(lab.table.configs[best], gain * 2, gain * 1.9, gain * 2.1), [])
    assert too_much.error == pytest.approx((1 + 2 * gain) / (1 + gain) - 1)
    assert too_much.covered == 0

    assert score(lab, Claim(lab.table.configs[worst], 0.1), []).false_better
    rolled_back = score(lab, Claim(lab.table.configs[over], 0.1), [])
    assert rolled_back.violation
    assert rolled_back.usable_gain == 0
    nothing = score(lab, Claim(), [])
    assert nothing.missed
    assert not nothing.is_better
    assert nothing.regret == pytest.approx(gain / (1 + gain))
    assert math.isnan(nothing.error)
    assert not score(lab, Claim(lab.table.configs[default], 0.0), []).violation


TABLE = """size,mode,mean,rel_dev
1,a,10,0.02
2,a,9,0.02
4,a,8,0.02
1,b,5,0.2
2,b,4,0.02
4,b,6,0.02
"""


def pool() -> str:
    nodes = [f"m{node}" for node in range(10)]
    lines = [",".join(["config_id", "run", "suggestion", "kind", "n_ok", "n_crash", *nodes, "p_size", "p_mode"])]
    for run in (0, 1):
        speeds = [100 * (1 + 0.01 * node + run) for node in range(10)]
        kinds = [("default", 1.0, "1MB", "a"), ("full", 2.0, "2MB", "a"), ("full", 0.5, "1MB", "b")]
        for number, (kind, factor, size, mode) in enumerate(kinds):
            figures = [f"{factor * speed:.3f}" for speed in speeds]
            lines.append(",".join([str(number), str(run), "0", kind, "10", "0", *figures, size, mode]))
        lines.append(",".join(["9", str(run), "0", "crash", "0", "10", *["crash"] * 10, "8MB", "b"]))
    return "\n".join(lines) + "\n"


def test_a_folder_of_tables_is_played_as_its_index_says(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(TABLE)
    (tmp_path / "pool.csv").write_text(pool())
    index = {
        "mine": {"file": "mine.csv", "better": "lower", "default": {"size": 1, "mode": "a"}},
        "null_mine": {"null_of": "mine"},
        "pool": {"file": "pool.csv", "better": "higher", "pool": True},
    }
    (tmp_path / "systems.json").write_text(json.dumps(index))
    systems = measured(tmp_path)
    assert list(systems) == ["mine", "pool", "null_mine"]

    mine = systems["mine"](0)
    assert [one.choices for one in mine.space.parameters] == [(1, 2, 4), ("a", "b")]
    assert mine.configs[mine.default] == {"size": 1, "mode": "a"}
    assert mine.noise_ratio.max() == 0.10
    lab = Lab(replace(mine, makes_unstable=False), 0)
    assert lab.truth.gain.max() == pytest.approx(10 / 4 - 1)
    assert Lab(systems["null_mine"](0), 0).truth.best_gain <= 1e-9

    table = systems["pool"](3)
    assert table.hosts == 10
    means = {
        tuple(config.values()): float(mean) for config, mean in zip(table.configs, table.base.mean(axis=1), strict=True)
    }
    level = means[1024**2, "a"]
    assert means[2 * 1024**2, "a"] / level == pytest.approx(2, rel=0.01)
    assert means[1024**2, "b"] / level == pytest.approx(0.5, rel=0.01)
    assert table.crashes is not None
    crashing = [config["size"] == 8 * 1024**2 for config in table.configs]
    assert (table.crashes.mean(axis=1) > 0.5).tolist() == crashing


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"neither systems.json nor any of the known tables"):
        measured(tmp_path)


def test_what_is_not_reached_is_named_and_ends_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "--budgets 100 --seeds 1 --null-seeds 1 --systems categorical null_cat --policies random benchhub"
    monkeypatch.setattr("sys.argv", ["bench.tuning", *arguments.split()])
    monkeypatch.setitem(bench.POLICIES, bench.OWN, bench.POLICIES["random"])
    assert bench.main() == 1
    text = capsys.readouterr().out
    assert "| 100 | false better on null_categorical | 100.0% | at most 5.0% | MISSED |" in text


def test_without_its_package_smac_is_left_out_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "--budgets 20 --seeds 1 --systems categorical --policies random smac"
    monkeypatch.setattr("sys.argv", ["bench.tuning", *arguments.split()])
    monkeypatch.setattr(bench, "is_installed", lambda: False)
    assert bench.main() == 0
    text = capsys.readouterr().out
    assert MISSING in text
    assert "| random | categorical |" in text
    assert "| smac |" not in text


def test_a_good_summary_meets_every_aim_and_each_bad_figure_misses_one() -> None:
    lab = Lab(synthetic("interacting", 1), 1)
    best = int(np.argmax(np.where(lab.truth.admissible, lab.truth.gain, -1)))
    gain = float(lab.truth.gain[best])
    good = summarised([score(lab, Claim(lab.table.configs[best], gain, gain - 0.01, gain + 0.01), [])])
    assert all(one.met for one in aims(100, {"real": good, "null_real": replace(good, runs=60.0)}))
    worse = {
        "regret": 0.1,
        "missed": 0.2,
        "error": 0.02,
        "error90": 0.05,
        "bias": -0.01,
        "covered": 0.9,
        "violation": 0.04,
    }
    for field, value in worse.items():
        bad = replace(good, **{field: value})  # type: ignore[arg-type]
        assert sum(not one.met for one in aims(100, {"real": bad})) == 1
    unclaimed = replace(good, error=math.nan, error90=math.nan, bias=math.nan, covered=math.nan)
    assert sum(not one.met for one in aims(100, {"real": unclaimed})) == 4
    for field, value in {"false_better": 0.06, "runs": 71.0}.items():
        bad = replace(good, **{field: value})  # type: ignore[arg-type]
        assert sum(not one.met for one in aims(100, {"null_real": bad})) == 1
