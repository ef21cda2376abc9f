"""The scaling laws: worked examples, peaks that are real and those that are not, single points, and advice."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analysis.scaling import ScalingLaw, fit_law
from experiments.analysis.scaling_points import advise_instances, efficiency, quantised

EXAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())
A7 = EXAMPLES["A7_usl"]
SDM = A7["specsdm91"]
RAYTRACER = A7["raytracer"]


def rounded(value: float, like: float) -> float:
    """`value` with as many decimals as `like` prints."""
    text = f"{like:.12f}".rstrip("0")
    return round(value, len(text.partition(".")[2]))


def law_of(example: dict[str, Any]) -> ScalingLaw:
    law = fit_law(example["N"], example["X"], noise="constant")
    assert law is not None
    return law


def test_the_published_usl_fit_comes_out_to_the_printed_digit() -> None:
    law = law_of(SDM)
    assert law.kind == "usl"
    for name in ("alpha", "beta", "gamma"):
        assert rounded(getattr(law, name).value, SDM[name]) == SDM[name]
    errors = [law.alpha.se, law.beta.se, law.gamma.se]
    assert [rounded(se or 0, want) for se, want in zip(errors, SDM["se"], strict=True)] == SDM["se"]
    assert round(law.sigma, 2) == SDM["sigma"]
    peak, optimum = law.peak, law.optimum
    assert peak is not None
    assert optimum is not None
    assert (round(peak.cpus, 2), round(peak.throughput_rps)) == tuple(SDM["peak"])
    assert (round(optimum.cpus, 2), round(optimum.throughput_rps)) == tuple(SDM["opt"])
    assert round(law.limit_rps or 0) == SDM["limit"]


def test_intervals_use_students_t_with_three_degrees_less_than_points() -> None:
    law = law_of(SDM)
    assert law.df == 4
    low, high = law.beta.ci95 or (0, 0)
    assert (high - low) / 2 / (law.beta.se or 1) == pytest.approx(2.776445)  # R's usl takes qt(.95, n - 1) = 1.943
    band = law.band(72)
    assert band is not None
    assert band[0] < law.at(72) < band[1]


def test_without_a_coherency_cost_the_law_is_amdahls_and_there_is_no_peak() -> None:
    law, want = law_of(RAYTRACER), RAYTRACER["amdahl"]
    assert law.kind == "amdahl"
    assert (law.beta.value, law.df, law.peak, law.computed_peak) == (RAYTRACER["beta"], 9, None, None)
    assert round(law.gamma.value, 3) == want["gamma"]
    assert round(law.alpha.value, 5) == want["alpha"]
    assert round(law.limit_rps or 0, 1) == want["limit"]
    assert (round(law.at(96), 2), round(law.at(128), 2)) == (want["X96"], want["X128"])


def test_the_older_two_parameter_method_would_have_seen_a_peak_there() -> None:
    n, x = np.array(RAYTRACER["N"], float), np.array(RAYTRACER["X"], float)
    deviation, steps = n / (x / x[0]) - 1, n - 1
    (square, linear), *_ = np.linalg.lstsq(np.stack([steps**2, steps], 1), deviation, rcond=None)
    assert round(math.sqrt((1 - (linear - square)) / square), 2) == RAYTRACER["gunther_2param_peak"]


def test_a_peak_far_beyond_the_measured_points_is_computed_but_not_reported() -> None:
    override = A7["peak_override"]
    n = [1.0, 2, 3, 4, 6, 8, 12]
    noise = [1, 0.9999, 1.0001, 1, 0.9999, 1.0001, 1]
    below = [1 + override["alpha"] * (k - 1) + override["beta"] * k * (k - 1) for k in n]
    law = fit_law(n, [1000 * k / b * e for k, b, e in zip(n, below, noise, strict=True)])
    assert law is not None
    assert law.peak is None
    exact = fit_law(n, [1000 * k / b for k, b in zip(n, below, strict=True)])
    assert exact is not None
    assert exact.computed_peak is not None
    assert exact.computed_peak.cpus == pytest.approx(override["peak"], abs=5e-5)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_three_parameters_are_not_fitted_to_three_points(count: int) -> None:
    assert fit_law([1.0, 2, 4][:count], [10.0, 19, 35][:count]) is None


@pytest.mark.parametrize("x", [[0.0, 1, 2, 3], [math.nan, 1, 2, 3], [-1.0, 1, 2, 3], [1.0, 2, 3]])
def test_points_that_cannot_be_throughput_are_refused(x: list[float]) -> None:
    with pytest.raises(ValueError):
        fit_law([1.0, 2, 4, 8], x)


def test_a_perfectly_linear_server_has_no_peak_and_no_serial_share() -> None:
    law = fit_law([1.0, 2, 4, 8, 16], [10.0, 20, 40, 80, 160])
    assert law is not None
    assert law.alpha.value == pytest.approx(0, abs=1e-6)
    assert law.peak is None


def test_super_linear_means_the_whole_interval_lies_above_one() -> None:
    one, steady, wild = [100.0, 101, 99], [950.0, 952, 948], [950.0, 1200, 700]
    assert efficiency(8, steady, one, base_cpus=1).super_linear
    assert not efficiency(8, wild, one, base_cpus=1).super_linear
    assert efficiency(8, [950.0], [100.0], base_cpus=1).super_linear
    assert efficiency(8, [950.0], [100.0], base_cpus=1).ci95 is None
    assert efficiency(1, one, one, base_cpus=1).ratio == 1.0


def test_efficiency_counts_from_the_fewest_cpus_that_were_measured() -> None:
    assert efficiency(8, [390.0], [200.0], base_cpus=4).ratio == pytest.approx(0.975)


def test_published_super_linear_points_are_whole_number_artefacts() -> None:
    want = EXAMPLES["A8_quantised"]
    found = quantised(want["cpu"], want["ir"])
    assert [list(pair) for pair in found.efficiency_intervals] == want["eff_interval"]
    assert found.linear_k is not None
    assert list(found.linear_k) == want["linear_k"]
    assert found.label == want["label"]


def test_a_step_that_no_straight_line_explains_is_real() -> None:
    assert quantised([1, 2, 4, 8], [10, 20, 35, 95]).label == "real"


def test_advice_on_instances_is_the_published_one() -> None:
    want = EXAMPLES["A9_instances"]
    found = advise_instances(
        want["gamma"], want["alpha"], want["beta"], cpus=want["T"], min_efficiency_ratio=want["e_min"]
    )
    assert (found.cpus_each, found.instances) == (want["k"], want["instances"])
    assert (round(found.total_rps, 1), round(found.single_rps, 1)) == (want["total"], want["single16"])


@pytest.mark.parametrize(
    ("cpus", "node", "each"), [(16, None, 16), (16, 8, 8), (12, 8, 6), (7, 4, 1)], ids=lambda value: str(value)
)
def test_instances_divide_the_cpus_evenly_and_fit_into_a_numa_node(cpus: int, node: int | None, each: int) -> None:
    assert advise_instances(100.0, 0.0, 0.0, cpus=cpus, cpus_per_node=node).cpus_each == each
