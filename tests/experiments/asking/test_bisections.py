"""Bisections: each step is an experiment, and its end launches the next one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from django.db import transaction
from django.test import Client

from agents import events as e
from agents.profiles.base.taken import TakenProfile
from bench.made_up_profiles import cost_ratio, made_up_profile
from experiments.analysis.verdict import judge
from experiments.asking.bisections.answer import answer_of
from experiments.asking.bisections.live import BISECTIONS, start_bisection
from experiments.asking.bisections.plan import BisectionPlan, versions_between
from experiments.asking.bisections.reading import remaining
from experiments.asking.launching.cancelling import cancel_experiment
from experiments.judging.verdicts.verdict_numbers import VerdictNumbers
from experiments.models import (
    AuditEntry,
    Bisection,
    BisectionStep,
    Experiment,
    HardwareProfile,
    Host,
    Member,
    Recipe,
    Role,
    Run,
    StoredVerdict,
    Team,
    Workload,
)
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.runs.run_profiles import store_run_profile
from experiments.running.ending.conclusion import conclude_experiment
from experiments.telling.sharing.bisection_sheet import bisection_sheet
from tests.experiments.api.conftest import MakeApi, make_api
from tests.experiments.conftest import RECIPE, MakeMember
from tests.experiments.finished import finish_next, report, whole_run
from tests.frontend.conftest import browser, browser_of

__all__ = ["browser", "browser_of", "make_api"]

COMMITS = ["c0", "c1", "c2", "c3", "c4", "c5"]
CHECKOUT = {
    "parameters": {"commit": {"type": "str", "default": "main"}},
    "steps": [{"kind": "environment", "variables": {"COMMIT": "${commit}"}}],
}
CPU = TakenProfile("async-profiler", event="cpu", engine="perf_events", window_s=(0.0, 10.0))
JITTER = (0.998, 1.001, 1.0, 1.002, 0.999)
Server = Callable[[str, int], float | None]


@pytest.fixture
def plan(admin: Member, stock: dict[str, Any]) -> dict[str, Any]:
    recipe = save_version(admin, Recipe, "at a commit", CHECKOUT)
    given = {"name": "Who slowed it?", "labels_in_order": COMMITS, "parameter": "commit"}
    return {**stock, "recipe": recipe, **given}


def start(member: Member, plan: dict[str, Any], **more: Any) -> Bisection:
    return start_bisection(member, BisectionPlan(**plan | more))


def label_of(run: Run) -> str:
    assert run.spec is not None
    return str(run.spec["recipe"]["parameters"].get("commit") or run.spec["recipe"]["version"])


def slow_from(first_bad: str, order: list[str]) -> Server:
    """1,000 requests/s, and 20 % fewer from this one on."""

    def answer(label: str, place: int) -> float:
        rate_rps = 800.0 if order.index(label) >= order.index(first_bad) else 1000.0
        return rate_rps * JITTER[place % len(JITTER)]

    return answer


def play(bisection: Bisection, server: Server, *, most_rounds: int = 40) -> Bisection:
    """Every run that the bisection launches, until it is over, as if it had run. None of the server: it failed."""
    for _ in range(most_rounds):
        queued = list(Run.objects.filter(state=Run.State.QUEUED).order_by("pk"))
        if not queued:
            break
        for place, run in enumerate(queued):
            as_if_run(run, server(label_of(run), place))
        with transaction.atomic():
            conclude_experiment(queued[0].experiment_id or 0)
    bisection.refresh_from_db()
    return bisection


def as_if_run(run: Run, throughput_rps: float | None) -> None:
    """The run as it is at its end, with this throughput; None = it failed."""
    run.state, run.started_at, run.finished_at = Run.State.FINISHED, run.queued_at, run.queued_at
    run.outcome = Run.Outcome.FAILED if throughput_rps is None else Run.Outcome.SUCCEEDED
    if throughput_rps is not None:
        run.validity, run.throughput_rps, run.metrics = "valid", throughput_rps, {"throughput_rps": throughput_rps}
    run.save()


def test_the_first_bad_commit_is_named_with_its_interval(admin: Member, plan: dict[str, Any]) -> None:
    bisection = play(start(admin, plan), slow_from("c4", COMMITS))
    assert (bisection.state, bisection.low, bisection.high) == ("finished", 3, 4)
    assert bisection.sentence.startswith("c4 is the first bad one. Throughput: c4 is slower than c0 by ")
    assert "The one before it: " in bisection.sentence
    steps = list(bisection.steps.all())
    assert [(step.index, step.result) for step in steps] == [(5, "bad"), (2, "good"), (3, "good"), (4, "bad")]
    bad = steps[-1]
    assert bad.estimate_pct is not None
    assert bad.ci95_low_pct is not None
    assert bad.ci95_high_pct is not None
    assert bad.estimate_pct == pytest.approx(-20, abs=1)
    assert bad.ci95_low_pct <= bad.estimate_pct <= bad.ci95_high_pct < 0
    assert bad.sentence in bisection.sentence
    first = steps[0].experiment
    assert first.labels == {"bisection": str(bisection.pk)}
    assert [variant.name for variant in first.variants.all()] == ["c0", "c5"]
    assert {run.labels["bisection"] for run in first.runs.all()} == {str(bisection.pk)}


def test_versions_of_a_recipe_are_bisected_in_either_direction(admin: Member, stock: dict[str, Any]) -> None:
    for _ in range(3):
        recipe = save_version(admin, Recipe, "limits", {**RECIPE, "description": f"{Recipe.objects.count()}"})
    assert versions_between(recipe, 1, 4) == ["1", "2", "3", "4"]
    order = versions_between(recipe, 4, 1)
    assert order == ["4", "3", "2", "1"]
    plan = {**stock, "recipe": recipe, "name": "Which version?", "labels_in_order": order}
    bisection = play(start(admin, plan), slow_from("2", order))
    assert bisection.sentence.startswith("v2 is the first bad one. Throughput: limits v2 is slower than limits v4 by ")
    with pytest.raises(RequestError, match="has no version"):
        versions_between(recipe, 1, 9)


def test_what_cannot_be_judged_is_gone_around(admin: Member, plan: dict[str, Any]) -> None:
    """c3 does not build: every run of it fails."""
    known = slow_from("c3", COMMITS)
    bisection = play(start(admin, plan), lambda label, place: None if label == "c3" else known(label, place))
    assert (bisection.state, bisection.low, bisection.high) == ("finished", 2, 4)
    assert bisection.sentence.startswith(
        "The first bad one is somewhere after c2 and not after c4: c3 stayed unclear. Throughput: c4 is slower"
    )


def test_more_repetitions_come_up_to_the_budget_and_then_it_is_unclear(admin: Member, plan: dict[str, Any]) -> None:
    def noisy(_label: str, place: int) -> float:
        return 1000.0 * (1 + 0.2 * ((place * 7919) % 13 - 6) / 6)

    bisection = play(start(admin, plan, labels_in_order=["c0", "c1"], max_blocks=8), noisy)
    (step,) = bisection.steps.all()
    assert (bisection.state, step.result) == ("stopped", "unclear")
    assert step.experiment.runs.count() == 2 * 8
    assert bisection.sentence.startswith(
        "c1 was not found to be worse than c0, so the search has no end to start from."
    )


def test_a_last_one_that_is_not_worse_leaves_nothing_to_find(admin: Member, plan: dict[str, Any]) -> None:
    bisection = play(start(admin, plan), lambda _label, place: 1000.0 * JITTER[place % 5])
    assert (bisection.state, bisection.steps.count()) == ("stopped", 1)
    assert "so there is nothing to find" in bisection.sentence


def test_what_cannot_start_as_it_is_specified_stops_it_at_once_with_the_reason(
    admin: Member, plan: dict[str, Any]
) -> None:
    """Two hosts that turn out to be one machine are seen by the first run of the good one."""
    bisection = start(admin, plan)
    why = e.Failed(
        "facts", "Server and load tool would share CPU 0 of one machine.", "Give CPU sets.", False, "specification"
    )
    while run := Run.objects.filter(state="queued").order_by("pk").first():
        finish_next([e.PhaseStarted("facts"), why])
        if label_of(run) == "c0":
            break
    bisection.refresh_from_db()
    assert bisection.state == "stopped"
    assert bisection.sentence == (
        f"c0 cannot run as it is specified (run #{run.number if run else 0}): Server and load tool would share CPU 0 "
        "of one machine. Give CPU sets."
    )
    answer = answer_of(bisection)
    assert (answer.outcome, answer.finished, answer.reasons[0]) == ("error", True, bisection.sentence)
    assert Experiment.objects.get().state == "cancelled"
    assert Run.objects.filter(outcome="failed").count() <= 2
    assert not Run.objects.exclude(state="finished").exists()


def test_server_and_load_tool_on_the_same_cpus_of_one_host_are_refused_at_the_start(
    admin: Member, plan: dict[str, Any]
) -> None:
    sut = plan["sut"]
    sut.profile = HardwareProfile.objects.create(team=admin.team, digest="d", facts={"cpu.online": "0-3"})
    sut.roles = Host.Roles.BOTH
    sut.save()
    with pytest.raises(RequestError) as refusal:
        start(admin, plan, drivers=(sut,))
    assert refusal.value.field == "workload.cpus"
    assert "Server and load tool would share CPU" in refusal.value.message
    assert not Bisection.objects.exists()


def test_a_candidate_that_may_be_better_is_good_without_being_alike(admin: Member, plan: dict[str, Any]) -> None:
    """About 2 % faster, between 0 and 4 %: not worse for sure, whether better or not."""

    def server(label: str, place: int) -> float:
        if label == "c0":
            return 1000.0
        if COMMITS.index(label) >= COMMITS.index("c4"):
            return 800.0
        return (1045.0, 990.0, 1045.0, 1000.0, 1020.0)[place // 2 % 5]

    bisection = play(start(admin, plan), server)
    assert bisection.sentence.startswith("c4 is the first bad one.")
    good = [step for step in bisection.steps.all() if step.result == "good"]
    assert good
    for step in good:
        outcome = StoredVerdict.objects.get(experiment=step.experiment, metric="throughput_rps").outcome
        assert outcome == "inconclusive"
        assert step.experiment.runs.count() == 10
        assert "not worse by more than 3 %" in step.sentence


@pytest.mark.parametrize(("full", "is_not_worse"), [(0, True), (4, True), (5, False), (10, False)])
def test_a_full_load_tool_leaves_open_whether_it_is_worse(full: int, is_not_worse: bool) -> None:
    verdict = judge([1000.0] * 5, [1045.0, 990.0, 1045.0, 1000.0, 1020.0], higher_is_better=True, design="blocked")
    stored = StoredVerdict(numbers={**asdict(verdict), "full_driver_runs": full})
    assert VerdictNumbers.of(stored).not_worse is is_not_worse


def test_a_step_that_ends_twice_launches_one_next_step(admin: Member, plan: dict[str, Any]) -> None:
    bisection = start(admin, plan)
    server = slow_from("c1", COMMITS)
    for place in range(10):
        rate_rps = server(label_of(Run.objects.filter(state="queued").order_by("pk")[0]), place)
        finish_next(whole_run(report(rate_rps or 0.0)))
    first = bisection.steps.get(position=0).experiment
    before = (BisectionStep.objects.count(), Run.objects.count())
    BISECTIONS.step_ended(first)
    conclude_experiment(first.pk)
    assert (BisectionStep.objects.count(), Run.objects.count()) == before == (2, 20)


def test_what_is_left_shrinks_with_every_step(admin: Member, plan: dict[str, Any]) -> None:
    bisection = start(admin, plan)
    at_first = remaining(bisection)
    assert at_first.steps == 4
    assert at_first.least.total_seconds() * 4 == at_first.most.total_seconds() > 0
    play(bisection, slow_from("c1", COMMITS), most_rounds=1)
    assert remaining(bisection).steps == 3
    play(bisection, slow_from("c1", COMMITS))
    assert remaining(bisection).steps == 0


def test_a_quota_that_is_used_up_only_delays_the_next_step(admin: Member, plan: dict[str, Any]) -> None:
    bisection = start(admin, plan)
    Team.objects.update(quota_queued_runs=1)
    bisection = play(bisection, slow_from("c4", COMMITS))
    assert (bisection.state, bisection.steps.count(), Experiment.objects.count()) == ("running", 1, 1)
    assert "The next step waits, and is tried again by itself: The team's quota is used up" in bisection.sentence
    assert bisection.sentence in answer_of(bisection).reasons
    Team.objects.update(quota_queued_runs=1000)
    BISECTIONS.try_again()
    bisection = play(bisection, slow_from("c4", COMMITS))
    assert bisection.sentence.startswith("c4 is the first bad one.")


def test_cancelling_ends_the_experiment_that_is_under_way(admin: Member, plan: dict[str, Any]) -> None:
    bisection = start(admin, plan)
    BISECTIONS.cancel(admin, bisection)
    assert (bisection.state, bisection.sentence) == ("cancelled", "Cancelled by ada.")
    assert Experiment.objects.get().state == "cancelled"
    assert not Run.objects.exclude(outcome="cancelled").exists()
    with pytest.raises(Conflict):
        BISECTIONS.cancel(admin, bisection)
    trail = AuditEntry.objects.filter(action__startswith="bisection.").order_by("pk")
    assert [entry.action for entry in trail] == ["bisection.start", "bisection.cancel"]


def test_cancelling_the_experiment_ends_the_bisection(admin: Member, plan: dict[str, Any]) -> None:
    bisection = start(admin, plan)
    cancel_experiment(admin, Experiment.objects.get())
    bisection.refresh_from_db()
    assert (bisection.state, bisection.sentence) == ("cancelled", "Its step 1 was cancelled.")


def test_it_stops_when_its_member_may_no_longer_launch(
    admin: Member, plan: dict[str, Any], make_member: MakeMember
) -> None:
    eve = make_member(admin.team, Role.ADMIN, "eve")
    first = start(eve, plan)
    Member.objects.filter(pk=eve.pk).update(role=Role.VIEWER)
    play(first, slow_from("c1", COMMITS))
    assert (first.state, first.steps.count()) == ("stopped", 1)
    assert first.sentence.startswith("The next step could not be launched: You may not launch runs on")
    Member.objects.filter(pk=eve.pk).update(role=Role.ADMIN)
    second = start(Member.objects.get(pk=eve.pk), plan)
    eve.delete()
    play(second, slow_from("c1", COMMITS))
    assert second.sentence == "Whoever started it is no longer a member of the team."


def test_it_stops_when_the_account_of_its_owner_is_closed(
    admin: Member, plan: dict[str, Any], make_member: MakeMember
) -> None:
    eve = make_member(admin.team, Role.ADMIN, "eve")
    bisection = start(eve, plan)
    eve.user.is_active = False
    eve.user.save()
    play(bisection, slow_from("c1", COMMITS))
    assert (bisection.state, bisection.steps.count()) == ("stopped", 1)
    assert bisection.sentence == "The account of whoever started it is closed."


def test_a_bisection_that_cannot_go_on_lets_its_experiment_and_the_last_run_of_it_end(
    admin: Member, plan: dict[str, Any]
) -> None:
    bisection = start(admin, plan)
    Bisection.objects.update(candidates=[])  # as nobody could have started it
    while Run.objects.filter(state="queued").exists():
        label = label_of(Run.objects.filter(state="queued").order_by("pk")[0])
        run = finish_next(whole_run(report(slow_from("c1", COMMITS)(label, 0) or 0.0)))
        assert run.outcome == "succeeded"
    bisection.refresh_from_db()
    assert bisection.state == "stopped"
    assert bisection.sentence.startswith("BenchHub failed to go on after step 1.")
    assert Experiment.objects.get().state == "finished"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"labels_in_order": ["c0"]}, "candidates"),
        ({"labels_in_order": ["c0", "c0"]}, "candidates"),
        ({"labels_in_order": ["c0", ""]}, "candidates"),
        ({"labels_in_order": ["c0", "x" * 101]}, "candidates"),
        ({"parameter": "branch"}, "parameter"),
        ({"parameter": ""}, "candidates"),
        ({"metric": "speed"}, "metric"),
        ({"margin_ratio": 0}, "margin_ratio"),
        ({"max_blocks": 2}, "max_blocks"),
        ({"drivers": []}, "drivers"),
    ],
)
def test_what_makes_no_bisection_is_refused_at_its_field(
    admin: Member, plan: dict[str, Any], given: dict[str, Any], field: str
) -> None:
    with pytest.raises(RequestError) as refusal:
        start(admin, plan, **given)
    assert refusal.value.field == field
    assert not Bisection.objects.exists()


def test_a_bisection_needs_the_right_to_launch(admin: Member, plan: dict[str, Any], make_member: MakeMember) -> None:
    with pytest.raises(Forbidden):
        start(make_member(admin.team, Role.LAUNCHER), plan)


def test_the_answer_has_the_functions_that_cost_more_in_the_first_bad_commit(
    admin: Member, plan: dict[str, Any], make_api: MakeApi, browser: Client
) -> None:
    """Every run has a profiled twin; from c3 on a parser costs more, and from c2 on nothing else is slower."""
    workload = plan["workload"]
    profiled = save_version(admin, Workload, workload.name, {**workload.body, "profilers": ["async-profiler"]})
    source = np.random.default_rng(5)
    bisection = start(admin, {**plan, "workload": profiled})
    for _ in range(20):
        queued = list(Run.objects.filter(state=Run.State.QUEUED).order_by("pk"))
        if not queued:
            break
        for place, run in enumerate(queued):
            changed = COMMITS.index(label_of(run)) >= 3
            rate = 1000 / cost_ratio(changed=changed) * JITTER[place % len(JITTER)]
            as_if_run(run, rate)
            if run.profiled:
                cpu_time_s = 0.0002 * cost_ratio(changed=changed) * rate * 10
                taken = replace(CPU, cpu_time_s=cpu_time_s, requests=round(rate * 10))
                store_run_profile(run, made_up_profile(source, changed=changed), taken)
        with transaction.atomic():
            conclude_experiment(queued[0].experiment_id or 0)
    bisection.refresh_from_db()
    answer = answer_of(bisection)
    assert (answer.first_bad, answer.outcome) == ("c3", "found")
    assert answer.functions is not None
    assert answer.functions.shown[0].name == "java/math/BigDecimal.<init>"
    assert (answer.functions.already, answer.functions.missing) == ((), "")
    assert answer.reasons[-1].startswith("In c3 against c0: java/math/BigDecimal.<init> costs ")
    said = make_api(admin).get(f"/bisections/{bisection.pk}/verdict").json()
    assert said["functions"]["shown"][0]["ci95"][0] > 0
    assert said["functions"]["sentence"] in said["markdown"].replace("\\", "")
    page = browser.get(f"/t/{admin.team.slug}/experiments/bisections/{bisection.pk}/").content.decode()
    assert "Functions that cost more in c3" in page
    assert "java/math/BigDecimal.&lt;init&gt; costs" in page
    titles = [one.title for one in bisection_sheet(bisection).sections]
    assert "Functions that cost more in c3" in titles


def test_without_profiles_the_answer_says_that_functions_are_not_known(admin: Member, plan: dict[str, Any]) -> None:
    answer = answer_of(play(start(admin, plan), slow_from("c4", COMMITS)))
    assert answer.functions is not None
    assert (answer.functions.shown, answer.functions.missing) == ((), "Functions: no run has a profile.")
    assert answer.reasons[-1] == "In which functions is not known. Functions: no run has a profile."
