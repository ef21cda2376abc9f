"""An experiment as a scaling measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from experiments.analysis.quadrant import CpuVerdict
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.judging.comparing.history import experiment_runs
from experiments.judging.comparing.scaling import Scaling, cpus_per_node, groups_of, groups_of_runs, scaling_of
from experiments.judging.gate.decision import experiment_gate
from experiments.judging.verdicts.cpu_verdicts import of_runs, of_variants
from experiments.models import Experiment, Member, Recipe, Run
from experiments.registry.documents.versions import save_version
from tests.experiments.finished import finish_next, report, whole_run

CPU_SET = {
    "parameters": {"cpus": {"type": "str"}, "instances": {"type": "int", "default": 1}},
    "steps": [{"kind": "affinity", "cpus": "${cpus}"}],
}


def sweep(
    admin: Member,
    stock: dict[str, Any],
    rates: Mapping[str, Sequence[float]],
    *,
    order: str = "sequential",
    **parameters: Any,
) -> Experiment:
    """An experiment with a variant per CPU set ("0-1", or "0-1 with 32"), whose repetitions reached these rates."""
    recipe = save_version(admin, Recipe, "server on a CPU set", CPU_SET)
    candidates = [
        Candidate(
            f"on {key}",
            stock["application"],
            recipe,
            stock["sut"],
            stock["drivers"],
            {"cpus": cpus, **parameters},
            concurrency=int(count) if count else None,
        )
        for key in rates
        for cpus, _, count in [key.partition(" with ")]
    ]
    count = len(next(iter(rates.values())))
    experiment = create_experiment(
        admin, name="sweep", workload=stock["workload"], candidates=candidates, repetitions=count, order=order
    )
    launch_experiment(admin, experiment)
    left = {f"on {cpus}": list(values) for cpus, values in rates.items()}
    while queued := Run.objects.filter(state="queued").order_by("number").first():
        assert queued.variant is not None
        finish_next(whole_run(report(left[queued.variant.name].pop(0))))
    return experiment


def scaling(experiment: Experiment, **more: Any) -> Scaling | None:
    return scaling_of(groups_of(experiment, list(experiment.variants.all()), experiment_runs(experiment)), **more)


def test_variants_on_more_and_more_cpus_make_a_scaling_measurement(admin: Member, stock: dict[str, Any]) -> None:
    law = {cpus: 1000.5 * n / (1 + 0.05 * (n - 1)) for cpus, n in (("0", 1), ("0-1", 2), ("0-3", 4), ("0-7", 8))}
    experiment = sweep(admin, stock, {cpus: [rate * 0.99, rate, rate * 1.01] for cpus, rate in law.items()})
    found = scaling(experiment, total_cpus=16)
    assert found is not None
    assert [point.group.cpus for point in found.points] == [1, 2, 4, 8]
    assert [round(point.efficiency.ratio, 3) for point in found.points] == [1.0, 0.952, 0.87, 0.741]
    assert found.points[2].efficiency.ci95 is not None
    assert found.law is not None
    assert found.law.alpha.value == pytest.approx(0.05, rel=1e-3)
    assert found.advice is not None
    assert (found.advice.instances, found.advice.cpus_each) == (8, 2)
    text = " ".join(found.sentences)
    assert "No peak is visible" in text
    assert "4 CPU counts are few for a law" in text
    assert "8 instances on 2 CPUs each" in text
    assert found.points[3].ideal_rps == pytest.approx(8 * found.points[0].mean.value)


def test_the_best_of_each_cpu_count_is_taken_over_other_loads(admin: Member, stock: dict[str, Any]) -> None:
    one = sweep(admin, stock, {"0": [100.5], "0-1": [150.5]})
    other = sweep(admin, stock, {"0": [90.5], "0-1": [190.5]})
    groups = [group for e in (one, other) for group in groups_of(e, list(e.variants.all()), experiment_runs(e))]
    found = scaling_of(groups)
    assert found is not None
    assert [point.mean.value for point in found.points] == [100.5, 190.5]
    assert [point.tried for point in found.points] == [2, 2]
    assert found.points[0].group.load.text == "16 connections"


def test_one_experiment_finds_the_best_load_of_each_cpu_count(admin: Member, stock: dict[str, Any]) -> None:
    rates = {
        "0 with 8": [100.5, 101.5, 99.5],
        "0 with 16": [110.5, 111.5, 109.5],
        "0 with 32": [80.5, 81.5, 79.5],
        "0-1 with 8": [120.5, 121.5, 119.5],
        "0-1 with 16": [150.5, 151.5, 149.5],
        "0-1 with 32": [190.5, 191.5, 189.5],
    }
    experiment = sweep(admin, stock, rates)
    found = scaling(experiment)
    assert found is not None
    assert [(point.group.name, point.tried) for point in found.points] == [("on 0 with 16", 3), ("on 0-1 with 32", 3)]
    assert [point.group.load.text for point in found.points] == ["16 connections", "32 connections"]
    assert found.points[1].efficiency.ratio == pytest.approx(190.5 / 221, rel=1e-3)
    assert "Connections with the best throughput: 16 on 1 CPU and 32 on 2 CPUs." in found.sentences
    assert "On 2 CPUs the most connections that were tried, 32, were the best: try more." in found.sentences
    apart = groups_of_runs(list(Run.objects.with_names()))
    assert sorted((group.cpus, len(group.values)) for group in apart) == [(1, 3)] * 3 + [(2, 3)] * 3


def test_published_rates_that_are_cut_off_are_no_super_linear_scaling(admin: Member, stock: dict[str, Any]) -> None:
    found = scaling(sweep(admin, stock, {"0": [1.0], "0-1": [2.0], "0-3": [5.0], "0-7": [11.0]}))
    assert found is not None
    assert found.whole_rates is not None
    assert found.whole_rates.linear_k == (1.375, 1.5)
    assert any("artefact" in sentence for sentence in found.sentences)
    assert not any("which no machine does by itself" in sentence for sentence in found.sentences)


def test_a_super_linear_point_is_explained(admin: Member, stock: dict[str, Any]) -> None:
    found = scaling(sweep(admin, stock, {"0": [100.5], "0-1": [201.5], "0-3": [352.5], "0-7": [955.5]}))
    assert found is not None
    (sentence,) = [one for one in found.sentences if "which no machine does" in one]
    assert sentence.startswith("8 CPUs do 1.19 times the share of one CPU")
    assert "fewer than three repetitions" in sentence


def test_several_instances_stand_beside_the_law_of_one(admin: Member, stock: dict[str, Any]) -> None:
    one = sweep(admin, stock, {"0": [100.5], "0-1": [180.5]})
    four = sweep(admin, stock, {"0-3": [390.5]}, instances=4)
    groups = [group for e in (one, four) for group in groups_of(e, list(e.variants.all()), experiment_runs(e))]
    found = scaling_of(groups)
    assert found is not None
    assert [point.group.cpus for point in found.points] == [1, 2]
    assert [(point.group.cpus, point.group.instances) for point in found.several] == [(4, 4)]
    assert found.several[0].efficiency.ratio == pytest.approx(390.5 / 402)


def test_one_cpu_count_is_no_scaling(admin: Member, stock: dict[str, Any]) -> None:
    assert scaling(sweep(admin, stock, {"0": [100.0]})) is None


def test_the_smallest_numa_node_limits_an_instance() -> None:
    assert cpus_per_node({"cpu.numa.node0": "0-7", "cpu.numa.node1": "8-11", "cpu.online": "0-11"}) == 4
    assert cpus_per_node({}) is None


def test_the_runs_of_an_aa_check_are_no_repetitions(admin: Member, stock: dict[str, Any]) -> None:
    experiment = sweep(admin, stock, {"0": [100.5, 110.5], "0-1": [180.5, 190.5]})
    experiment.aa_first = True  # its blocks, 0 and 1, are then those of the check
    assert groups_of(experiment, list(experiment.variants.all()), experiment_runs(experiment)) == []


def cpu_verdict(experiment: Experiment) -> CpuVerdict:
    """On the only candidate."""
    found = of_variants(
        experiment, list(experiment.variants.all()), experiment_runs(experiment), list(experiment.verdicts.all())
    )
    return found[0].verdict


@pytest.mark.parametrize("order", ["blocks", "sequential"])
def test_a_slower_candidate_waits_or_works_more(admin: Member, stock: dict[str, Any], order: str) -> None:
    experiment = sweep(admin, stock, {"0-1": [1000.5] * 5, "2-3": [600.5] * 5}, order=order)
    found = cpu_verdict(experiment)
    assert found.quadrant == "high_cpu_low_tps"
    stored = experiment.verdicts.get(metric="throughput_rps").sentence
    (reason,) = experiment_gate(experiment).reasons
    for sentence in (found.sentence, stored, reason):
        assert ("measured one after the other" in sentence) is (order == "sequential"), sentence


def test_too_few_repetitions_name_no_cause(admin: Member, stock: dict[str, Any]) -> None:
    experiment = sweep(admin, stock, {"0-1": [1000.5] * 4, "2-3": [725.5] * 4}, order="blocks")
    assert experiment.verdicts.get(metric="throughput_rps").outcome == "invalid"
    found = cpu_verdict(experiment)
    assert found.quadrant == "too_early"
    assert "(+37.9 % [" in found.sentence
    assert found.sentence.endswith("Too early to say why: 4 of 5 repetitions.")
    (single,) = of_runs(experiment_runs(experiment)[:2])
    assert single.verdict.sentence.endswith("single runs show no noise.")


def test_a_throughput_in_doubt_names_no_cause(admin: Member, stock: dict[str, Any]) -> None:
    experiment = sweep(admin, stock, {"0-1": [1000.5] * 5, "2-3": [600.5] * 5}, order="blocks")
    stored = experiment.verdicts.get(metric="throughput_rps")
    stored.numbers |= {"doubt": "The driver was full in 10 of 10 runs, of both variants."}
    stored.save()
    assert cpu_verdict(experiment).quadrant == "unclear"
    stored.numbers |= {"doubt": "", "family": {"method": "holm", "size": 6, "adjusted_p": 0.08, "stands": False}}
    stored.save()
    assert "does not hold among 6 comparisons." in cpu_verdict(experiment).sentence
