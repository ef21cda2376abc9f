"""A gate with rules of its own: metrics, margin, what too little data means, a baseline from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from experiments.asking.launching.bulk import archive_runs, tag_runs
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.judging.gate.decision import GateVerdict, experiment_gate, run_gate
from experiments.judging.gate.rules import GateRules
from experiments.models import Experiment, Member, Run
from experiments.registry.errors import RequestError
from experiments.registry.runs.baselines import pin
from tests.experiments.finished import finish_next, report, whole_run

Play = Callable[..., Experiment]


@pytest.fixture
def play(admin: Member, stock: dict[str, Any]) -> Play:
    """Make an experiment and let all of its runs happen, with the throughput of each variant."""

    def played(*by_variant_rps: float, labels: dict[str, str] | None = None, repetitions: int = 5) -> Experiment:
        sides = {key: stock[key] for key in stock if key != "workload"}
        candidates = [Candidate(f"v{index}", **sides) for index in range(len(by_variant_rps))]
        experiment = create_experiment(
            admin,
            name="nightly",
            workload=stock["workload"],
            candidates=candidates,
            repetitions=repetitions,
            labels=labels,
        )
        launch_experiment(admin, experiment)
        while following := experiment.runs.filter(state="queued").order_by("id").first():
            assert following.variant is not None
            assert following.block is not None
            wobble = 1 + 0.002 * ((7 * following.block + following.variant.position) % 5 - 2)
            finish_next(whole_run(report(by_variant_rps[following.variant.position] * wobble)))
        experiment.refresh_from_db()
        return experiment

    return played


def asked(experiment: Experiment, **rules: Any) -> GateVerdict:
    return experiment_gate(Experiment.objects.get(pk=experiment.pk), GateRules(**rules))


def test_the_margin_of_the_gate_decides(play: Play) -> None:
    experiment = play(1000, 950)
    assert asked(experiment).outcome == "fail"
    wide = asked(experiment, margin_ratio=0.2)
    assert (wide.outcome, wide.numbers[0].outcome) == ("pass", "no_practical_difference")
    assert (wide.comment, wide.comment_reason) == (False, "Nothing changed beyond the margin.")
    stored = Experiment.objects.get(pk=experiment.pk)
    assert (stored.margin_ratio, stored.verdicts.get(metric="throughput_rps").outcome) == (0.03, "worse")


def test_the_metrics_of_the_gate_decide(play: Play) -> None:
    experiment = play(1000, 1100)
    said = asked(experiment, metrics=("latency_p99_ms", "throughput_rps"))
    assert (said.outcome, said.comment, "is better" in said.comment_reason) == ("pass", True, True)
    deciding = {number.metric for number in said.numbers if number.decides}
    assert deciding == {"latency_p99_ms", "throughput_rps"}
    once, twice = (asked(experiment, metrics=("throughput_rps",) * times) for times in (1, 2))
    assert (twice.reasons, twice.numbers) == (once.reasons, once.numbers), "named twice, it decides once"


def test_too_little_data_means_what_the_gate_says(play: Play) -> None:
    experiment = play(1000, 950, repetitions=2)
    run = Run(number=1, state="finished", outcome="succeeded", validity="suspect")
    cases: list[tuple[Any, str]] = [("neutral", "inconclusive"), ("pass", "pass"), ("fail", "fail")]
    for inconclusive, outcome in cases:
        said = asked(experiment, inconclusive=inconclusive)
        assert (said.outcome, said.finished, run_gate(run, inconclusive).outcome) == (outcome, True, outcome)
        assert (f"inconclusive result as {inconclusive}" in said.reasons[-1]) == (inconclusive != "neutral")


def test_an_unfinished_experiment_stays_inconclusive(play: Play) -> None:
    experiment = play(1000, 950, repetitions=1)
    Run.objects.filter(number=1).update(state="queued", outcome="")
    said = asked(experiment, inconclusive="pass")
    assert (said.outcome, said.finished, said.comment) == ("inconclusive", False, False)


SESSIONS_RPS = (1000, 1003, 998, 1001, 997, 1002)


def main_branch(admin: Member, play: Play, sessions: int = len(SESSIONS_RPS)) -> int:
    """Sessions of three runs of the main branch; the number of the newest run, which is pinned as 11.0."""
    for level in SESSIONS_RPS[:sessions]:
        before = play(level, labels={"branch": "main", "build": "17"}, repetitions=3)
        tag_runs(admin, before.runs.values_list("number", flat=True), ["release"])
    number = before.runs.latest("number").number
    pin(admin, before.runs.latest("number"), "11.0")
    return number


def test_another_build_is_held_against_the_sessions_of_the_main_branch(admin: Member, play: Play) -> None:
    number = main_branch(admin, play)
    same = play(1001, labels={"branch": "quick"})
    baselines = ("branch:main", "label:build=17", "tag:release", "pinned:11.0", f"run:{number}")
    for baseline in baselines:
        assert asked(same, baseline=baseline).outcome == "pass", baseline
    slower = play(900, labels={"branch": "slow"})
    for baseline in baselines:
        worse = asked(slower, baseline=baseline)
        assert worse.outcome == "fail", baseline
        said = "is 3 runs, #16 to #18" if baseline.startswith(("pinned", "run")) else "is 18 runs of 6 sessions"
        assert said in worse.reasons[-1], baseline
        assert worse.numbers[0].change_pct == pytest.approx(-10, abs=0.5)
        assert worse.comment


FULL = [{"check": "driver_cpu", "level": "warn", "sentence": "", "evidence": {"driver_cpu_mean_ratio": 0.95}}]


def test_sessions_behind_a_full_driver_decide_nothing(admin: Member, play: Play) -> None:
    main_branch(admin, play)
    slower = play(900, labels={"branch": "slow"})
    slower.runs.update(findings=FULL)
    said = asked(slower, baseline="branch:main")
    assert said.outcome == "fail"  # the branch's own runs had a driver with CPU to spare
    Run.objects.update(findings=FULL)
    said = asked(slower, baseline="branch:main")
    assert said.outcome == "inconclusive"
    assert "of both variants, so their throughput is the driver's and not the servers'." in said.reasons[0]


def test_a_difference_as_large_as_that_between_sessions_fails_nothing(admin: Member, play: Play) -> None:
    for level in (1000, 1040, 970, 1030, 960, 1010):
        play(level, labels={"branch": "main"}, repetitions=3)
    slower = play(965, labels={"branch": "slow"})

    said = asked(slower, baseline="branch:main")

    assert said.outcome == "inconclusive"
    assert "sessions differ by 3." in said.reasons[0]


def test_a_few_sessions_do_not_tell_how_much_sessions_differ(admin: Member, play: Play) -> None:
    main_branch(admin, play, sessions=4)
    slower = play(900, labels={"branch": "slow"})

    for baseline in ("branch:main", "pinned:11.0"):
        said = asked(slower, baseline=baseline)
        assert said.outcome == "inconclusive", baseline
        assert "4 of 5 earlier sessions" in said.reasons[0]


def test_a_baseline_that_cannot_be_compared_leaves_it_open(admin: Member, play: Play) -> None:
    before, after = play(1000), play(1000)
    pin(admin, before.runs.latest("number"), "other")
    before.runs.update(fingerprint="f" * 64)
    for baseline in ("branch:main", "tag:none", "pinned:other", "run:1"):
        said = asked(after, baseline=baseline)
        assert said.outcome == "inconclusive", baseline
        assert "No comparable run stands behind" in said.reasons[-1]


NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({"baseline": "main"}, "baseline"),
    ({"baseline": "branch:"}, "baseline"),
    ({"baseline": "label:x"}, "baseline"),
    ({"baseline": "run:many"}, "baseline"),
    ({"baseline": "run:99"}, "baseline"),
    ({"baseline": "pinned:none"}, "baseline"),
    ({"baseline": "tag:\0"}, "baseline"),
    ({"metrics": ("speed",)}, "metric"),
    ({"metrics": ("throughput_rps",) * 11}, "metric"),
    ({"margin_ratio": 1.0}, "margin_pct"),
]


def test_rules_that_make_no_sense_are_refused(play: Play) -> None:
    experiment = play(1000, 1000, repetitions=1)
    for rules, field in NONSENSE:
        with pytest.raises(RequestError) as caught:
            asked(experiment, **rules)
        assert caught.value.field == field


def test_archived_runs_stay_in_the_verdict_of_their_experiment(admin: Member, play: Play) -> None:
    experiment = play(1000, 900)
    archive_runs(admin, experiment.runs.values_list("number", flat=True))
    assert asked(experiment).outcome == asked(experiment, margin_ratio=0.03).outcome == "fail"
