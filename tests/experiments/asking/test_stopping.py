"""Stop rules in the engine: looks, caps, adaptive blocks, the A/A check, and workers that die or end at once."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from experiments.asking.launching.cancelling import cancel_experiment
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.asking.launching.pausing import pause_experiment, resume_experiment
from experiments.models import AuditEntry, Experiment, Member, Run, StoredVerdict, Team
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.experiments.rules import Rules
from experiments.running.ending.conclusion import conclude_experiment, conclude_stuck
from experiments.running.queue.dispatch import claim_next
from tests.experiments.finished import finish_next, report, whole_run

Throughput = Callable[[Run], float]


def noise(run: Run, size: float) -> float:
    """A wobble that no two runs share, and that does not depend on the random order inside a block."""
    assert run.block is not None
    assert run.variant is not None
    return 1 + size * math.sin(12.9898 * (10 * run.block + run.variant.position + 1))


@pytest.fixture
def make(admin: Member, stock: dict[str, Any]) -> Callable[..., Experiment]:
    def made(rules: Rules, *, variants: int = 2, launched: bool = True, **more: Any) -> Experiment:
        sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
        candidates = [Candidate(f"v{i}", parameters={"nofile": 2048 + i}, **sides) for i in range(variants)]
        experiment = create_experiment(
            admin, name="q", workload=stock["workload"], candidates=candidates, rules=rules, **more
        )
        if launched:
            launch_experiment(admin, experiment)
        return experiment

    return made


def play(experiment: Experiment, throughput: Throughput, *, most: int = 200) -> list[int]:
    """Let every run happen until none is left; the number of queued blocks after each time that blocks were added."""
    planned = [blocks_of(experiment)]
    for _ in range(most):
        following = experiment.runs.filter(state="queued").order_by("id").first()
        if following is None or experiment.state in ("paused", "blocked"):
            break
        finish_next(whole_run(report(throughput(following))))
        experiment.refresh_from_db()
        if blocks_of(experiment) != planned[-1]:
            planned.append(blocks_of(experiment))
    return planned


def blocks_of(experiment: Experiment) -> int:
    return len(set(experiment.runs.values_list("block", flat=True)))


def factor(*by_variant: float, wobble: float = 0.002) -> Throughput:
    def throughput(run: Run) -> float:
        assert run.variant is not None
        return 1000.0 * by_variant[run.variant.position] * noise(run, wobble)

    return throughput


CLEAR = Rules(stop_rule="until_clear")


def test_a_clear_difference_stops_at_the_first_look(make: Callable[..., Experiment]) -> None:
    experiment = make(CLEAR)
    assert play(experiment, factor(1.0, 1.2)) == [5]
    assert (experiment.state, experiment.repetitions) == ("finished", 5)
    assert experiment.state_reason == "Stopped after 5 blocks: every verdict that decides is clear."
    verdict = StoredVerdict.objects.get(metric="throughput_rps")
    assert verdict.outcome == "better"
    assert (verdict.numbers["alpha"], verdict.numbers["looks"]) == (0.016, 1)
    assert "(98.4 %), n=5+5; one of several looks, at α 0.016." in verdict.sentence


def test_an_unclear_one_goes_on_to_the_next_looks_and_stops_at_its_cap(make: Callable[..., Experiment]) -> None:
    experiment = make(Rules(stop_rule="until_clear", max_blocks=12))
    assert play(experiment, factor(1.0, 1.02, wobble=0.2)) == [5, 8, 12]
    assert experiment.state == "finished"
    assert experiment.state_reason == "Stopped at the cap of 12 blocks; not settled: v1."
    numbers = StoredVerdict.objects.get(metric="throughput_rps").numbers
    assert (numbers["n_a"], numbers["looks"]) == (12, 3)


def test_added_blocks_are_the_same_runs_in_a_new_order(make: Callable[..., Experiment]) -> None:
    experiment = make(Rules(stop_rule="until_clear", max_blocks=8))
    play(experiment, factor(1.0, 1.02, wobble=0.2))
    for variant in experiment.variants.all():
        runs = list(experiment.runs.filter(variant=variant).order_by("id"))
        assert len(runs) == 8
        assert [run.spec for run in runs] == [runs[0].spec] * 8
        assert {run.created_by_id for run in runs} == {experiment.created_by_id}
        assert {run.retries_left for run in runs} == {1}
    assert sorted(experiment.runs.values_list("number", flat=True)) == list(range(1, 17))


def test_runs_that_do_not_count_are_explained_by_what_most_of_them_lack(make: Callable[..., Experiment]) -> None:
    experiment = make(Rules())
    for _ in range(10):
        following = experiment.runs.filter(state="queued").order_by("id").first()
        assert following is not None
        assert following.variant is not None
        errors = {"errors_connect": 1280} if following.variant.position == 0 and following.block else {}
        finish_next(whole_run(report(1000.0, **errors)))
    verdict = StoredVerdict.objects.get(experiment=experiment, metric="throughput_rps")
    assert verdict.sentence == (
        "Throughput: no verdict on v1: 1 of 5 runs of v0 counts, 5 are needed. In 4 of 4 that do not: "
        "1,280 errors beside 10,000 completed requests: connect 1,280."
    )


def test_further_blocks_hold_only_what_is_undecided_and_the_baseline(make: Callable[..., Experiment]) -> None:
    experiment = make(Rules(stop_rule="until_clear", max_blocks=8), variants=3)

    def throughput(run: Run) -> float:
        assert run.variant is not None
        wobble = 0.08 if run.variant.position == 1 else 0.002
        return 1000.0 * (1.0, 1.02, 1.3)[run.variant.position] * noise(run, wobble)

    play(experiment, throughput)
    counts = {v.name: experiment.runs.filter(variant=v).count() for v in experiment.variants.all()}
    assert counts == {"v0": 8, "v1": 8, "v2": 5}
    families = StoredVerdict.objects.filter(metric="throughput_rps").order_by("candidate__position")
    assert [verdict.numbers["family"]["size"] for verdict in families] == [2, 2]
    assert {verdict.numbers["alpha"] for verdict in families} == {0.008}


def test_a_budget_in_hours_goes_to_the_widest_interval(make: Callable[..., Experiment]) -> None:
    experiment = make(Rules(stop_rule="until_clear", max_blocks=8, max_hours=22 / 6), variants=3, launched=False)
    launch_experiment(Member.objects.get(user__username="ada"), experiment)
    wobble = (0.002, 0.04, 0.09)

    def throughput(run: Run) -> float:
        assert run.variant is not None
        return 1000.0 * noise(run, wobble[run.variant.position]) * (1.02 if run.variant.position else 1.0)

    for _ in range(15):
        following = experiment.runs.filter(state="queued").order_by("id").first()
        assert following is not None
        run = finish_next(whole_run(report(throughput(following))))
        Run.objects.filter(pk=run.pk).update(started_at=run.finished_at - timedelta(minutes=10))  # type: ignore[operator]
        if experiment.runs.filter(state="queued").count() == 1:
            # The last run takes 10 minutes as well, as the look that follows it will see.
            last = experiment.runs.get(state="queued")
            Run.objects.filter(pk=last.pk).update(started_at=last.queued_at - timedelta(minutes=10))
    # 15 runs took 2 h 30; 7 more fit into 3 h 40: three blocks of the widest pair, not of both.
    added = experiment.runs.filter(state="queued").values_list("variant__name", flat=True)
    assert sorted(added) == ["v0"] * 3 + ["v2"] * 3


def test_a_budget_that_is_used_up_stops_and_says_so(make: Callable[..., Experiment]) -> None:
    experiment = make(Rules(stop_rule="until_clear", max_hours=1e-9))
    assert play(experiment, factor(1.0, 1.02, wobble=0.2)) == [5]
    assert experiment.state == "finished"
    assert "leaves no time for the next look; not settled: v1" in experiment.state_reason


def test_precision_stops_two_blocks_after_the_interval_is_narrow(make: Callable[..., Experiment]) -> None:
    experiment = make(Rules(stop_rule="until_precise", target_ratio=0.01, max_blocks=30))
    assert play(experiment, factor(1.0, 1.02)) == [8, 10]
    assert experiment.state_reason == "Stopped after 10 blocks: every interval is within ±1 %."
    assert StoredVerdict.objects.get(metric="throughput_rps").numbers["alpha"] == 0.05


def test_an_invalid_repetition_is_made_up_for(make: Callable[..., Experiment]) -> None:
    experiment = make(CLEAR)
    first = finish_next(whole_run(report(1000.0, errors_connect=1280)))
    assert first.validity == "invalid"
    assert play(experiment, factor(1.0, 1.2)) == [5, 6]
    assert StoredVerdict.objects.get(metric="throughput_rps").numbers["n_a"] == 5


def test_runs_that_never_count_do_not_go_on_for_ever(make: Callable[..., Experiment]) -> None:
    experiment = make(CLEAR)
    for _ in range(60):
        if not experiment.runs.filter(state="queued").exists():
            break
        finish_next(whole_run(report(1000.0, errors_connect=1280)))
    experiment.refresh_from_db()
    assert (experiment.state, blocks_of(experiment)) == ("finished", 10)
    assert "10 blocks do not count" in experiment.state_reason


def test_judging_again_adds_nothing_twice(make: Callable[..., Experiment]) -> None:
    experiment = make(CLEAR)
    for _ in range(10):
        following = experiment.runs.filter(state="queued").order_by("id").first()
        assert following is not None
        finish_next(whole_run(report(factor(1.0, 1.02, wobble=0.2)(following))))
    before = experiment.runs.count()
    assert before == 16
    for _ in range(3):
        with transaction.atomic():
            conclude_experiment(experiment.pk)
    assert experiment.runs.count() == before


@pytest.mark.django_db(transaction=True)
def test_two_runs_that_end_at_once_add_the_next_blocks_once(make: Callable[..., Experiment]) -> None:
    experiment = make(CLEAR)
    for _ in range(8):
        following = experiment.runs.filter(state="queued").order_by("id").first()
        assert following is not None
        finish_next(whole_run(report(factor(1.0, 1.02, wobble=0.2)(following))))
    last = list(experiment.runs.filter(state="queued").order_by("id"))
    ready = threading.Barrier(2)

    def end(run: Run) -> None:
        try:
            with transaction.atomic():
                Run.objects.filter(pk=run.pk).update(
                    state="finished",
                    outcome="succeeded",
                    validity="valid",
                    metrics={"throughput_rps": factor(1.0, 1.02, wobble=0.2)(run)},
                )
                ready.wait(120)
                conclude_experiment(experiment.pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=end, args=(run,)) for run in last]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    experiment.refresh_from_db()
    assert (experiment.state, experiment.runs.count(), blocks_of(experiment)) == ("running", 16, 8)


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_dies_while_it_adds_blocks_leaves_none(make: Callable[..., Experiment]) -> None:
    experiment = make(CLEAR)
    experiment.runs.update(state="finished", outcome="succeeded", validity="valid")
    for run in experiment.runs.all():
        Run.objects.filter(pk=run.pk).update(metrics={"throughput_rps": factor(1.0, 1.02, wobble=0.2)(run)})
    with transaction.atomic():
        conclude_experiment(experiment.pk)
        assert experiment.runs.count() == 16
        transaction.set_rollback(True)
    assert experiment.runs.count() == 10
    with transaction.atomic():
        conclude_experiment(experiment.pk)
    assert experiment.runs.count() == 16


def test_an_experiment_whose_last_judgement_failed_is_judged_again(make: Callable[..., Experiment]) -> None:
    stuck, going = make(CLEAR), make(CLEAR)
    for run in stuck.runs.select_related("variant"):
        metrics = {"throughput_rps": factor(1.0, 1.2)(run)}
        Run.objects.filter(pk=run.pk).update(state="finished", outcome="succeeded", validity="valid", metrics=metrics)
    conclude_stuck()
    stuck.refresh_from_db()
    going.refresh_from_db()
    assert (stuck.state, going.state) == ("finished", "running")
    assert going.runs.count() == 10


def test_an_experiment_that_cannot_go_on_lets_its_last_run_end_and_goes_on_later(
    make: Callable[..., Experiment],
) -> None:
    experiment = make(CLEAR)
    Team.objects.update(next_run_number=1)  # these are taken
    play(experiment, factor(1.0, 1.02, wobble=0.2))
    assert (experiment.state, experiment.runs.count()) == ("running", 10)
    assert set(experiment.runs.values_list("state", "outcome")) == {("finished", "succeeded")}
    assert experiment.verdicts.exists()
    Team.objects.update(next_run_number=11)
    conclude_stuck()
    assert experiment.runs.count() == 16


def test_repetitions_added_by_hand_are_a_look_that_was_not_planned(
    make: Callable[..., Experiment], admin: Member
) -> None:
    experiment = make(Rules(stop_rule="until_clear", max_blocks=5))
    play(experiment, factor(1.0, 1.02, wobble=0.2))
    assert experiment.state == "finished"
    launch_experiment(admin, experiment, repetitions=2)
    play(experiment, factor(1.0, 1.02, wobble=0.2))
    numbers = StoredVerdict.objects.get(metric="throughput_rps").numbers
    assert (experiment.state, numbers["n_a"], numbers["looks"]) == ("finished", 7, 2)


AA = Rules(aa_first=True)


def test_the_baseline_runs_against_itself_first(make: Callable[..., Experiment]) -> None:
    experiment = make(AA, repetitions=5)
    assert set(experiment.runs.values_list("variant__name", flat=True)) == {"v0"}
    assert play(experiment, factor(1.0, 1.2)) == [10, 15]
    assert (experiment.state, experiment.repetitions) == ("finished", 5)
    assert experiment.aa_result["outcome"] == "no_practical_difference"
    verdict = StoredVerdict.objects.get(metric="throughput_rps")
    assert (verdict.outcome, verdict.numbers["n_a"]) == ("better", 5)


def drifting(run: Run) -> float:
    """Whatever the A/A coin calls the candidate is a tenth faster: something besides the variants changes."""
    import random

    experiment = run.experiment
    assert experiment is not None
    assert run.block is not None
    swapped = random.Random(f"{experiment.seed}/aa/{run.block // 2}").random() < 0.5
    candidate = (run.block % 2 == 1) != swapped
    return 1000.0 * noise(run, 0.002) * (1.1 if candidate else 1.0)


def test_a_baseline_that_differs_from_itself_blocks_the_experiment(
    make: Callable[..., Experiment], admin: Member
) -> None:
    experiment = make(AA, repetitions=5)
    play(experiment, drifting)
    assert (experiment.state, experiment.runs.count()) == ("blocked", 10)
    assert "found a difference where there is none" in experiment.state_reason
    assert "Then launch a copy, or resume to go on as it is." in experiment.state_reason
    assert experiment.aa_result["outcome"] == "better"
    with pytest.raises(Conflict, match="resume it first"):
        launch_experiment(admin, experiment, repetitions=1)
    resume_experiment(admin, experiment)
    assert (experiment.state, experiment.runs.filter(state="queued").count()) == ("running", 10)
    assert AuditEntry.objects.filter(action="experiment.resume").exists()


def test_an_a_a_check_without_enough_runs_blocks_too(make: Callable[..., Experiment]) -> None:
    experiment = make(AA, repetitions=5)
    finish_next(whole_run(report(1000.0, errors_connect=1280)))
    play(experiment, factor(1.0, 1.0))
    assert experiment.state == "blocked"
    assert "4 of 5 pairs of runs count" in experiment.state_reason


def test_a_paused_experiment_starts_nothing_and_goes_on_where_it_was(
    make: Callable[..., Experiment], admin: Member
) -> None:
    experiment = make(CLEAR)
    for _ in range(4):
        finish_next(whole_run(report(1000.0)))
    pause_experiment(admin, experiment)
    assert (experiment.state, experiment.state_reason) == ("paused", "Paused by ada.")
    assert claim_next("worker") is None
    with pytest.raises(Conflict, match="only a running one"):
        pause_experiment(admin, experiment)
    resume_experiment(admin, experiment)
    assert experiment.state == "running"
    with pytest.raises(Conflict, match="nothing to resume"):
        resume_experiment(admin, experiment)
    assert claim_next("worker") is not None


def test_a_look_that_falls_into_a_pause_waits_for_the_end_of_it(make: Callable[..., Experiment], admin: Member) -> None:
    experiment = make(CLEAR)
    for run in experiment.runs.order_by("id")[:9]:
        finish_next(whole_run(report(factor(1.0, 1.02, wobble=0.2)(run))))
    last = claim_next("worker")
    assert last is not None
    pause_experiment(admin, experiment)
    with transaction.atomic():
        metrics = {"throughput_rps": factor(1.0, 1.02, wobble=0.2)(last)}
        Run.objects.filter(pk=last.pk).update(state="finished", outcome="succeeded", validity="valid", metrics=metrics)
        conclude_experiment(experiment.pk)
    assert experiment.runs.count() == 10
    resume_experiment(admin, experiment)
    assert (experiment.state, experiment.runs.count()) == ("running", 16)


def test_a_paused_experiment_can_be_cancelled(make: Callable[..., Experiment], admin: Member) -> None:
    experiment = make(CLEAR)
    pause_experiment(admin, experiment)
    cancel_experiment(admin, experiment)
    assert experiment.state == "cancelled"
    assert not experiment.runs.exclude(state="finished").exists()


@pytest.mark.parametrize(
    ("rules", "more", "field"),
    [
        (Rules(stop_rule="sometimes"), {}, "stop_rule"),
        (Rules(stop_rule="until_clear", max_blocks=4), {}, "max_blocks"),
        (Rules(stop_rule="until_clear", max_blocks=21), {}, "max_blocks"),
        (Rules(stop_rule="until_clear", max_hours=0.0), {}, "max_hours"),
        (Rules(stop_rule="until_clear"), {"order": "sequential"}, "order"),
        (Rules(stop_rule="until_clear"), {"variants": 1}, "stop_rule"),
        (Rules(stop_rule="until_precise"), {}, "target_ratio"),
        (Rules(stop_rule="until_precise", target_ratio=0.01, max_blocks=7), {}, "max_blocks"),
        (Rules(gate_metrics=("speed",)), {}, "gate_metrics"),
    ],
)
def test_rules_that_make_no_sense_are_refused(
    make: Callable[..., Experiment], rules: Rules, more: dict[str, Any], field: str
) -> None:
    with pytest.raises(RequestError) as refused:
        make(rules, launched=False, **more)
    assert refused.value.field == field


def test_two_metrics_that_decide_are_a_family_and_both_must_be_clear(make: Callable[..., Experiment]) -> None:
    experiment = make(Rules(gate_metrics=("latency_p99_ms",)), repetitions=5)
    play(experiment, factor(1.0, 1.2))
    stored = {verdict.metric: verdict for verdict in StoredVerdict.objects.all()}
    decided = {metric: v.numbers["family"] for metric, v in stored.items() if v.numbers["decides"]}
    assert set(decided) == {"throughput_rps", "latency_p99_ms"}
    assert all(family["method"] == "holm" and family["size"] == 2 for family in decided.values())
    assert "holds among 2 comparisons (Holm, p" in stored["throughput_rps"].sentence
    beside = [v.numbers["family"]["method"] for v in stored.values() if not v.numbers["decides"]]
    assert beside
    assert set(beside) == {"benjamini_hochberg"}
