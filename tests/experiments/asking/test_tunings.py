"""Tuning searches: each trial is a run, and what follows is a function of the trials that are stored."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from agents import events as e
from agents.events import AnyEvent
from experiments.analysis.tuning.search import BudgetTooSmall, Round, decide
from experiments.asking.launching.cancelling import cancel_run
from experiments.asking.launching.choices import Choice
from experiments.asking.tunings.answer import answer_of
from experiments.asking.tunings.due import go_on_due
from experiments.asking.tunings.live import TUNINGS, start_tuning, without_gain
from experiments.asking.tunings.more_budget import More, more_for, more_to_look_for_others
from experiments.asking.tunings.plan import LimitWanted, TuningPlan
from experiments.asking.tunings.reading import cost_of, limits_text, shown, trials_of
from experiments.asking.tunings.recipes import left_out, save_recipe
from experiments.asking.tunings.steering import add_budget, find_smallest, leave_out, pause, resume
from experiments.asking.tunings.trials import searched, settings_of, space_to_search, trials_over
from experiments.judging.comparing.comparison import Confounder, comparable_runs, compare
from experiments.keeping.retention.exemptions import in_use
from experiments.models import Experiment, Member, Recipe, Role, Run, StoredVerdict, Team, Tuning, TuningTrial, Variant
from experiments.registry.database_clock import database_now
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.hosts.driver_sets import driver_set
from experiments.running.ending.conclusion import give_up
from tests.experiments.conftest import MakeMember, ready_host
from tests.experiments.finished import finish_next, report, whole_run
from tests.experiments.systems import run_of_a_system, system_of

RECIPE = {
    "parameters": {
        "nofile": {"type": "int", "default": 4096, "minimum": 1024, "maximum": 65536},
        "nproc": {"type": "int", "default": 4096, "minimum": 64},
        "mode": {"type": "str", "default": "plain", "choices": ["plain", "fast"]},
    },
    "steps": [
        {"kind": "limits", "nofile": "${nofile}", "nproc": "${nproc}"},
        {"kind": "environment", "variables": {"MODE": "${mode}"}},
    ],
}
SPACE: dict[str, Any] = {
    "parameters": [
        {"name": "nofile", "low": 1024, "high": 65536, "log": True},
        {"name": "nproc", "low": 1024, "high": 8192},
        {"name": "mode"},
    ]
}
Answer = Callable[[dict[str, Any], int], list[AnyEvent]]


@pytest.fixture
def choice(admin: Member, stock: dict[str, Any]) -> Choice:
    return Choice(**stock | {"recipe": save_version(admin, Recipe, "limits", RECIPE)})


def start(member: Member, choice: Choice, **more: Any) -> Tuning:
    given: dict[str, Any] = {"name": "Faster?", "choice": choice, "space": SPACE, "budget_runs": 30, "seed": 7}
    return start_tuning(member, TuningPlan(**given | more))


def config_of(run: Run) -> dict[str, Any]:
    assert run.spec is not None
    return dict(run.spec["recipe"]["parameters"])


def planted(config: dict[str, Any], number: int) -> list[AnyEvent]:
    """A server that is a quarter faster in its mode "fast", and that nothing else changes."""
    wiggle = 1 + 0.004 * ((number * 7) % 5 - 2)
    return whole_run(report((1250.0 if config["mode"] == "fast" else 1000.0) * wiggle))


def equal(config: dict[str, Any], number: int) -> list[AnyEvent]:
    return whole_run(report(1000.0 * (1 + 0.004 * ((number * 7) % 5 - 2))))


def failed(why: str, cause: Any = "specification") -> list[AnyEvent]:
    return [e.PhaseStarted("facts"), e.Failed("facts", why, "", False, cause)]


def until_the_load() -> list[AnyEvent]:
    events = whole_run()
    return events[: next(at for at, one in enumerate(events) if isinstance(one, e.LoadStarted)) + 1]


def play(tuning: Tuning, answer: Answer = planted, *, most: int = 400) -> Tuning:
    """Every trial that the search launches, until it is over."""
    TUNINGS.work_out(tuning.pk)  # it follows the commit of whatever a person did
    for _ in range(most):
        queued = Run.objects.filter(state=Run.State.QUEUED).first()
        if queued is None:
            break
        finish_next(answer(config_of(queued), queued.number))
    tuning.refresh_from_db()
    return tuning


def test_a_planted_gain_is_found_confirmed_and_reduced_to_the_parameter_that_brings_it(
    admin: Member, choice: Choice
) -> None:
    tuning = start(
        admin, choice, labels={"commit": "4f2c"}, space={"parameters": SPACE["parameters"][1:]}, budget_runs=20
    )
    with pytest.raises(Conflict):
        find_smallest(admin, tuning)
    tuning = play(tuning)
    assert (tuning.state, tuning.outcome) == ("finished", "better")
    assert tuning.winner is not None
    assert tuning.winner["mode"] == "fast"
    assert (tuning.low_ratio or 0) <= 0.25 <= (tuning.high_ratio or 0)
    assert "is better than the default by" in tuning.sentence
    assert "none of which belonged to the search" in tuning.sentence
    assert tuning.best is not None
    assert tuning.best["low"] < 0.25 < tuning.best["high"]
    with pytest.raises(Conflict):
        add_budget(admin, tuning, runs=20)
    find_smallest(admin, tuning)
    assert (tuning.state, tuning.smallest) == ("running", None)
    tuning = play(tuning)
    trials = list(tuning.trials.all())
    assert [one.position for one in trials] == list(range(len(trials)))
    assert sum(one.purpose != "revert" for one in trials) <= 20
    assert trials[0].config == tuning.default == {"nproc": 4096, "mode": "plain"}
    assert tuning.state == "finished"
    assert tuning.smallest is not None
    assert tuning.smallest["config"] == {**tuning.default, "mode": "fast"}
    assert "mode stays" in " ".join(one["sentence"] for one in tuning.smallest["each"])
    with pytest.raises(Conflict):
        find_smallest(admin, tuning)
    assert Run.objects.get(number=1).labels == {"commit": "4f2c", "tuning": str(tuning.pk), "trial": "1"}
    kept = Run.objects.filter(in_use()["a trial of a tuning search"])
    assert kept.count() == tuning.trials.exclude(run=None).count()
    made = save_recipe(admin, tuning)
    assert made.version == choice.recipe.version + 1
    assert made.body["parameters"]["mode"]["default"] == "fast"
    assert save_recipe(admin, tuning) == made


def answered(admin: Member, choice: Choice) -> Tuning:
    """A search whose answer is the mode "fast", without its runs."""
    tuning = start(admin, choice)
    TUNINGS.cancel(admin, tuning)
    winner = {**tuning.default, "mode": "fast"}
    Tuning.objects.update(state="finished", outcome="better", winner=winner, gain_ratio=0.2, low_ratio=0.1,
                          high_ratio=0.3)  # fmt: skip
    tuning.refresh_from_db()
    return tuning


def test_a_saved_answer_leaves_out_no_later_version_of_the_recipe_unless_somebody_knows(
    admin: Member, choice: Choice
) -> None:
    def version(*steps: dict[str, Any]) -> Recipe:
        return save_version(admin, Recipe, "limits", {**RECIPE, "steps": [*choice.recipe.body["steps"], *steps]})

    tuning = answered(admin, choice)
    safer, safest = (version({"kind": "environment", "variables": {"SAFE": value}}) for value in ("1", "2"))
    assert left_out(tuning) == [safer, safest]
    for without in (None, safer.version, tuning.recipe.version):
        words = r"limits v3 to v4 came after limits v2.*without_version=4.*: mode=fast\."
        with pytest.raises(Conflict, match=words) as refused:
            save_recipe(admin, tuning, without_version=without)
        assert refused.value.field == "without_version"
    made = save_recipe(admin, tuning, without_version=safest.version)
    assert made.note.startswith("Made of version 2, without what limits v3 to v4 changed. Tuning search")
    version({"kind": "environment", "variables": {"SAFE": "3"}})
    assert save_recipe(admin, tuning) == made  # it is there already
    Tuning.objects.update(
        smallest={"config": {**tuning.default, "mode": "fast", "nproc": 2048}, "dropped": [], "each": []}
    )
    tuning.refresh_from_db()
    with pytest.raises(Conflict, match="limits v3 to v6"):
        save_recipe(admin, tuning)
    version()  # all is as it was searched again
    assert left_out(tuning) == []
    assert save_recipe(admin, tuning).note.startswith("Tuning search")


def test_what_somebody_saves_at_the_same_moment_is_seen_by_whoever_saves_an_answer(
    admin: Member, choice: Choice
) -> None:
    tuning = answered(admin, choice)

    def saved_while_the_lock_was_waited_for(save: Callable[[], object]) -> Callable[..., Any]:
        left = [save]

        def look(execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
            if "FOR NO KEY UPDATE" in sql and left:
                left.pop()()
            return execute(sql, *arguments)

        return look

    def safer() -> Recipe:
        added = {"kind": "environment", "variables": {"SAFE": "1"}}
        return save_version(admin, Recipe, "limits", {**RECIPE, "steps": [*choice.recipe.body["steps"], added]})

    with (
        connection.execute_wrapper(saved_while_the_lock_was_waited_for(safer)),
        pytest.raises(Conflict, match="limits v3 came after limits v2"),
    ):
        save_recipe(admin, tuning)
    assert safer().version == 3  # the refusal undid it, which was in its transaction here
    twin = Tuning.objects.get(pk=tuning.pk)
    with connection.execute_wrapper(
        saved_while_the_lock_was_waited_for(lambda: save_recipe(admin, twin, without_version=3))
    ):
        assert save_recipe(admin, tuning, without_version=3) == twin.smaller_recipe
    assert Recipe.objects.filter(name="limits").count() == 4


def test_every_trial_is_a_function_of_those_before_it_and_is_launched_once(admin: Member, choice: Choice) -> None:
    tuning = play(start(admin, choice, space={"parameters": SPACE["parameters"][1:]}, budget_runs=20), most=14)
    over = trials_over(tuning)
    TUNINGS.step_ended(Run.objects.get(number=14))  # told twice
    assert tuning.trials.exclude(run=None).count() == 15
    planned = list(tuning.trials.values_list("config", "purpose", "block"))
    at = 0
    while at < len(over):
        decided = decide(settings_of(tuning, over[:at]), searched(over[:at]))
        assert isinstance(decided, Round)
        told = [(dict(one.config), one.purpose, one.block) for one in decided.planned]
        assert told == planned[at : at + len(told)]
        at += len(told)


def test_where_nothing_is_better_nothing_is_claimed_and_more_budget_goes_on(admin: Member, choice: Choice) -> None:
    tuning = play(start(admin, choice, budget_runs=20), equal)
    assert (tuning.state, tuning.winner, tuning.gain_ratio) == ("finished", None, None)
    assert tuning.outcome in ("nothing_better", "budget_too_small")
    before = tuning.trials.count()
    add_budget(admin, tuning, runs=40)
    assert (tuning.state, tuning.outcome) == ("running", "")
    tuning = play(tuning, equal)
    assert (tuning.state, tuning.winner) == ("finished", None)
    assert before < tuning.trials.count() <= 60


def test_more_budget_after_a_confirmation_that_failed_searches_on_and_confirms_what_it_finds(
    admin: Member, choice: Choice
) -> None:
    def once(config: dict[str, Any], number: int) -> list[AnyEvent]:
        """Looks better until it is confirmed."""
        pairs = TuningTrial.objects.filter(purpose="confirm").exclude(run=None).count()
        return planted(config, number) if not pairs else equal(config, number)

    tuning = play(start(admin, choice, budget_runs=20), once)
    assert (tuning.state, tuning.winner) == ("finished", None)
    level = settings_of(tuning, ()).level(1)
    before, known = tuning.trials.count(), {one.config["nofile"] for one in tuning.trials.all()}
    assert tuning.trials.filter(purpose="confirm").exists()
    add_budget(admin, tuning, runs=60)
    assert settings_of(tuning, ()).level(1) == level / 2  # a further look at the same pairs
    tuning = play(tuning, lambda config, number: (equal if config["nofile"] in known else planted)(config, number))
    purposes = list(tuning.trials.filter(position__gte=before).values_list("purpose", flat=True))
    assert purposes[0] == "confirm"  # first the finalists that are left
    assert "explore" in purposes
    assert (tuning.state, tuning.outcome) == ("finished", "better")
    assert tuning.winner is not None
    assert tuning.winner["nofile"] not in known


def test_budget_that_is_added_while_pairs_are_made_is_a_further_look_at_them(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice, budget_runs=20)
    add_budget(admin, tuning, runs=1)
    assert settings_of(tuning, trials_over(tuning)).looks == 1  # nothing to be seen of any pair yet
    TUNINGS.work_out(tuning.pk)
    while not tuning.trials.filter(purpose="confirm", result="ok").exists():
        queued = Run.objects.get(state=Run.State.QUEUED)
        finish_next(planted(config_of(queued), queued.number))
    tuning.refresh_from_db()
    pause(admin, tuning)
    add_budget(admin, tuning, runs=200)
    add_budget(admin, tuning, runs=1)  # in two parts, without any other pair in between
    found = settings_of(tuning, trials_over(tuning))
    assert (found.looks, found.looked_at) == (2, len(trials_over(tuning)))


def test_invalid_runs_are_made_again_and_never_scored(admin: Member, choice: Choice) -> None:
    def answer(config: dict[str, Any], number: int) -> list[AnyEvent]:
        if number % 6 == 0:  # three times as fast, in a run that does not count
            return whole_run(report(3000.0, duration_s=5.0, requests=15000))
        return planted(config, number)

    tuning = play(start(admin, choice, budget_runs=24), answer)
    invalid = tuning.trials.filter(result="invalid")
    assert invalid.count() >= 3
    assert set(invalid.values_list("figure", flat=True)) == {None}
    assert all("5" in one.reason for one in invalid), invalid[0].reason
    assert tuning.trials.filter(why__contains="invalid").exists()
    assert (tuning.high_ratio or 0) < 0.4


def test_crashed_and_refused_configurations_are_no_answer(admin: Member, choice: Choice) -> None:
    def answer(config: dict[str, Any], number: int) -> list[AnyEvent]:
        if config["mode"] == "fast" and config["nofile"] < 8192:
            return failed("The server did not start.")
        if config["nproc"] > 7000:
            return whole_run(report(2000.0, errors_connect=900))
        return planted(config, number)

    tuning = play(start(admin, choice, budget_runs=24), answer)
    results = set(tuning.trials.values_list("result", flat=True))
    assert {"refused", "crashed"} <= results
    for one in tuning.trials.filter(result__in=("refused", "crashed")):
        assert one.figure is None
        assert one.reason
    if tuning.winner:
        assert tuning.winner["nofile"] >= 8192
        assert tuning.winner["nproc"] <= 7000


def killed(config: dict[str, Any], number: int) -> list[AnyEvent]:
    return failed("The server ended during the load with exit status 137.", "host")


def unanswered(config: dict[str, Any], number: int) -> list[AnyEvent]:
    return whole_run(report(1.0, requests=0))


def too_slow(config: dict[str, Any], number: int) -> list[AnyEvent]:
    return whole_run(report(50.0, requests=500))


@pytest.mark.parametrize("ending", [killed, unanswered, too_slow])
def test_what_a_configuration_does_again_and_others_do_not_is_its_own(
    admin: Member, choice: Choice, ending: Answer
) -> None:
    def answer(config: dict[str, Any], number: int) -> list[AnyEvent]:
        return ending(config, number) if config["nproc"] > 4096 else planted(config, number)

    limits = [LimitWanted("latency_p99_ms", at_most=1e6)]
    tuning = play(start(admin, choice, limits=limits, budget_runs=24), answer)
    assert tuning.state == "finished", tuning.sentence
    assert tuning.trials.filter(result="crashed").exists()
    assert not tuning.trials.filter(result="ok", config__nproc__gt=4096).exists()
    assert tuning.winner is None or tuning.winner["nproc"] <= 4096


def test_an_outage_is_no_configurations_fault(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice, budget_runs=24)
    tuning = play(tuning, lambda config, number: planted(config, number) if number < 12 else killed(config, number))
    assert (tuning.state, tuning.trials.filter(result="crashed").count()) == ("stopped", 0)
    assert "newest runs were all invalid" in tuning.sentence


def test_a_default_that_is_killed_is_not_blamed(admin: Member, choice: Choice) -> None:
    tuning = play(start(admin, choice, budget_runs=24), killed)
    assert (tuning.state, tuning.trials.filter(result="crashed", purpose="control").count()) == ("stopped", 0)


def test_a_metric_that_no_run_has_ends_the_search_at_once(admin: Member, choice: Choice) -> None:
    limits = [LimitWanted("latency_p99_ms", at_most=1e6)]
    tuning = play(start(admin, choice, limits=limits), too_slow)
    assert (tuning.state, tuning.trials.exclude(result="").count()) == ("stopped", 1)
    assert "Search again with another metric or a longer load." in tuning.sentence
    for _ in range(2):
        resume(admin, tuning)
        TUNINGS.work_out(tuning.pk)
        assert config_of(Run.objects.get(state=Run.State.QUEUED)) == tuning.default  # before anything else
        finish_next(too_slow(tuning.default, 1))
        tuning.refresh_from_db()
        assert tuning.state == "stopped"
    resume(admin, tuning)  # the load is longer now
    assert play(tuning).outcome == "better"


def test_a_metric_that_is_0_with_the_default_ends_the_search_at_once(admin: Member, choice: Choice) -> None:
    def idle(config: dict[str, Any], number: int) -> list[AnyEvent]:
        return whole_run(report(1000.0, latency_mean_ms=0.0))

    tuning = play(start(admin, choice, metric="latency_mean_ms"), idle)
    assert (tuning.state, tuning.trials.exclude(result="").count()) == ("stopped", 1)
    assert tuning.sentence.startswith("Latency, mean is 0 with the default, and nothing has a ratio to that: search by")
    assert tuning.trials.get(position=0).result == "invalid"


def test_a_limit_is_kept_by_what_is_recommended(admin: Member, choice: Choice) -> None:
    def answer(config: dict[str, Any], number: int) -> list[AnyEvent]:
        fast = config["mode"] == "fast"
        return whole_run(report(1250.0 if fast else 1000.0 + number % 3, latency_p99_ms=55.0 if fast else 40.0))

    limits = [LimitWanted("latency_p99_ms", at_most=50.0), LimitWanted("errors_total", at_most=0)]
    tuning = play(start(admin, choice, limits=limits, budget_runs=20), answer)
    assert tuning.state == "finished"
    assert tuning.winner is None
    assert [one for one in tuning.trials.filter(result="ok") if len(one.bounded) != 1] == []


def with_memory(events: list[AnyEvent], used_bytes: float) -> list[AnyEvent]:
    at = next(place for place, one in enumerate(events) if isinstance(one, e.LoadReported))
    values = {"memory.used_bytes": ("bytes", used_bytes)}
    return [*events[:at], *(e.Samples("sut", 1000.0 + second, values) for second in range(-2, 12)), *events[at:]]


def test_memory_in_use_is_a_limit_of_an_ordinary_server(admin: Member, choice: Choice) -> None:
    def answer(config: dict[str, Any], number: int) -> list[AnyEvent]:
        return with_memory(planted(config, number), 3e9 if config["mode"] == "fast" else 1e9 + number)

    limit = LimitWanted("sut_memory_used_bytes", at_most=2_147_483_648)
    tuning = play(start(admin, choice, limits=[limit], budget_runs=20), answer)
    assert (tuning.state, tuning.winner) == ("finished", None)
    seen = {(one.config["mode"], one.bounded[0] > 2e9) for one in tuning.trials.filter(result="ok")}
    assert seen == {("fast", True), ("plain", False)}
    assert limits_text(tuning) == ["sut_memory_used_bytes ≤ 2,147,483,648"]


def test_a_system_is_searched_by_the_figures_of_its_own_members(admin: Member, stock: dict[str, Any]) -> None:
    choice = Choice(**system_of(admin, stock))
    space = {"parameters": [{"name": "swappiness", "low": 0, "high": 100}]}
    wanted = ("web.memory_used_bytes", "sut_memory_used_bytes", "app.cpu_ratio", "database.memory_used_bytes")
    limits = [LimitWanted(name, at_most=4e9) for name in wanted]
    tuning = start(admin, choice, space=space, limits=limits, metric="database.sent_bytes_per_s")
    finish_next(run_of_a_system({"sut": 0.4, "database": 0.6, "app": 0.2}))
    trial = tuning.trials.get(position=0)
    assert (trial.result, trial.figure, len(trial.bounded)) == ("ok", 5e6, 4), trial.reason
    for name in ("web.cpu_ratio", "sut.memory_used_bytes", "cache.cpu_ratio"):  # the first is sut_cpu_ratio of the run
        with pytest.raises(RequestError, match=r"known: .*, database\.cpu_ratio|and \d+ more") as refused:
            start(admin, choice, space=space, limits=[LimitWanted(name, at_most=1)])
        assert refused.value.field == "limits"


def test_the_answer_says_in_how_many_of_the_runs_it_rests_on_each_limit_held(admin: Member, choice: Choice) -> None:
    over_ms = dict.fromkeys(range(1, 100, 6), 51.0)

    def answer(config: dict[str, Any], number: int) -> list[AnyEvent]:
        fast = config["mode"] == "fast"
        p99_ms = over_ms.get(number, 44.0) if fast else 44.0
        return whole_run(report(1250.0 if fast else 1000.0 + number % 3, latency_p99_ms=p99_ms))

    wanted = [
        LimitWanted("errors_total", at_most=0),
        LimitWanted("latency_p99_ms", at_most=50.0),
        LimitWanted("throughput_rps", at_least=900.0),
    ]
    tuning = play(start(admin, choice, limits=wanted, budget_runs=30), answer)
    won = tuning.trials.filter(purpose="confirm", config=tuning.winner, result="ok").values_list(
        "run__number", flat=True
    )
    held = sum(number not in over_ms for number in won)
    assert 0 < held < len(won)
    assert f"latency_p99_ms ≤ 50 held in {held} of the {len(won)} runs with it." in tuning.sentence
    assert f"throughput_rps ≥ 900 held in {len(won)} of the {len(won)} runs with it." in tuning.sentence
    assert f"errors_total ≤ 0 held in {len(won)} of all {len(won)} runs with it." in tuning.sentence
    assert "crashed" not in tuning.sentence


@pytest.mark.parametrize(
    ("ending", "held"),
    [
        (whole_run(report(1250.0, errors_status=7)), 0),
        (whole_run(report(50.0, requests=500)), 1),
        ([*until_the_load(), e.Failed("measure", "The server refused the load.", "", False, "specification")], 0),
    ],
)
def test_the_answer_says_how_many_of_all_runs_with_it_crashed_and_kept_a_limit_of_0(
    admin: Member, choice: Choice, ending: list[AnyEvent], held: int
) -> None:
    def answer(config: dict[str, Any], number: int) -> list[AnyEvent]:
        of_winner = TuningTrial.objects.filter(purpose="confirm", config__mode="fast")
        is_third = of_winner.count() == 3 and not of_winner.filter(result="crashed").exists()
        is_in_it = of_winner.filter(run__number=number).exists()
        return ending if is_third and is_in_it else planted(config, number)

    limits = [LimitWanted("errors_total", at_most=0), LimitWanted("latency_p99_ms", at_most=1e6)]
    tuning = play(start(admin, choice, limits=limits, budget_runs=40), answer)
    runs = tuning.trials.filter(purpose="confirm", config=tuning.winner)
    assert list(runs.exclude(result="ok").values_list("result", flat=True)) == ["crashed"], tuning.sentence
    fine = runs.count() - 1
    assert f"errors_total ≤ 0 held in {fine + held} of all {fine + 1} runs with it." in tuning.sentence
    assert f"latency_p99_ms ≤ 1,000,000 held in {fine} of the {fine} runs with it." in tuning.sentence
    assert tuning.sentence.endswith(f" 1 of all {fine + 1} runs with it crashed.")


def test_a_default_that_does_not_run_stops_the_search_at_once(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice)
    finish_next(failed("Server and load tool would share CPU 0."))
    tuning.refresh_from_db()
    assert (tuning.state, tuning.trials.exclude(run=None).count()) == ("stopped", 1)
    assert "The default itself does not run (run #1): Server and load tool would share CPU 0." in tuning.sentence
    for _ in range(3):
        resume(admin, tuning)
        TUNINGS.work_out(tuning.pk)
        assert config_of(Run.objects.get(state=Run.State.QUEUED)) == tuning.default  # before anything else
        finish_next(failed("Server and load tool would share CPU 0."))
        tuning.refresh_from_db()
        assert tuning.state == "stopped"
    resume(admin, tuning)  # it was mended
    assert play(tuning).outcome == "better"


def test_a_trial_that_nobody_could_judge_is_judged_when_the_search_goes_on(
    admin: Member, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = start(admin, choice)
    with monkeypatch.context() as broken:
        broken.setattr("experiments.asking.tunings.live.judged", None)
        finish_next(equal({}, 1))
    tuning.refresh_from_db()
    assert (tuning.state, "BenchHub failed to go on" in tuning.sentence) == ("stopped", True)
    resume(admin, tuning)
    assert (tuning.state, tuning.trials.get(position=0).result) == ("running", "ok")
    assert play(tuning).outcome == "better"


def test_a_host_that_is_dirty_stops_the_search(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice)
    finish_next(whole_run(differences=("vm.swappiness is 10, was 60",)))
    tuning.refresh_from_db()
    assert tuning.state == "stopped"
    assert "could not be proven to be as before" in tuning.sentence
    assert not Run.objects.filter(state=Run.State.QUEUED).exists()
    resume(admin, tuning)  # its next run waits for the host
    TUNINGS.work_out(tuning.pk)
    assert Run.objects.filter(state=Run.State.QUEUED).count() == 1


def test_lost_runs_in_a_row_end_the_search_until_somebody_takes_it_up_again(admin: Member, choice: Choice) -> None:
    def away(config: dict[str, Any], number: int) -> list[AnyEvent]:
        return failed("The host is away.", "host")

    tuning = play(play(start(admin, choice, budget_runs=40), most=12), away)
    assert tuning.state == "stopped"
    assert "newest runs were all invalid" in tuning.sentence
    before = tuning.trials.exclude(run=None).count()
    assert before == 12 + 5
    resume(admin, tuning)
    assert (tuning.state, tuning.sentence, tuning.finished_at) == ("running", "", None)
    tuning = play(tuning, away)
    assert (tuning.state, tuning.trials.exclude(run=None).count()) == ("stopped", before + 5)
    add_budget(admin, tuning, runs=10)
    tuning = play(tuning)
    assert (tuning.state, tuning.outcome) == ("finished", "better")
    with pytest.raises(Conflict, match="neither paused nor stopped"):
        resume(admin, tuning)


def test_a_paused_search_launches_nothing_until_it_goes_on_with_the_same_trial(admin: Member, choice: Choice) -> None:
    tuning = play(start(admin, choice), most=9)
    pause(admin, tuning)
    tuning = play(tuning, most=1)
    assert not Run.objects.filter(state=Run.State.QUEUED).exists()
    over = trials_over(tuning)
    decided = decide(settings_of(tuning, over), searched(over))
    assert isinstance(decided, Round)
    with pytest.raises(Conflict):
        pause(admin, tuning)
    resume(admin, tuning)
    TUNINGS.work_out(tuning.pk)
    assert tuning.trials.count() == 11
    assert tuning.trials.get(position=10).config == decided.planned[0].config
    with pytest.raises(Conflict):
        resume(admin, tuning)


def test_a_confirmation_that_cannot_be_taken_up_stops_its_search_and_keeps_no_other_waiting(
    admin: Member, choice: Choice
) -> None:
    space = {"parameters": SPACE["parameters"][1:]}
    due = play(start(admin, choice, space=space, budget_runs=20, confirm_after_hours=12))
    assert due.paused
    Tuning.objects.filter(pk=due.pk).update(confirms_at=database_now() - timedelta(seconds=1))
    Recipe.objects.filter(pk=choice.recipe.pk).update(body={**choice.recipe.body, "of_another_version": 1})
    other_choice = replace(choice, recipe=save_version(admin, Recipe, "others", RECIPE))
    other = start(admin, other_choice, space=space)
    finish_next(planted(config_of(Run.objects.get(state=Run.State.QUEUED)), 1))
    other.trials.filter(result="").delete()  # as if the worker had died before its round was stored
    Run.objects.filter(state=Run.State.QUEUED).update(state=Run.State.FINISHED, outcome="cancelled")
    go_on_due(after_s=0)
    due.refresh_from_db()
    assert due.state == "stopped"
    assert due.sentence.startswith("BenchHub failed to go on when its confirmation was due.")
    assert Run.objects.filter(state=Run.State.QUEUED).count() == 1


def test_the_search_stops_when_its_owner_is_gone_or_may_not_launch(
    admin: Member, choice: Choice, make_member: MakeMember
) -> None:
    eve, bob = (make_member(admin.team, Role.ADMIN, name) for name in ("eve", "bob"))
    first = start(eve, choice)
    eve.user.is_active = False
    eve.user.save()
    finish_next(planted(config_of(Run.objects.get()), 1))
    first.refresh_from_db()
    assert (first.state, first.sentence) == ("stopped", "The account of whoever started it is closed.")
    second = start(bob, choice)
    Member.objects.filter(pk=bob.pk).update(role=Role.VIEWER)
    finish_next(planted(config_of(Run.objects.get(state=Run.State.QUEUED)), 1))
    second.refresh_from_db()
    assert second.state == "stopped"
    assert "could not be launched: You may not launch runs on" in second.sentence


@pytest.mark.parametrize("quota", ["quota_runs_per_day", "quota_queued_runs"])
def test_a_quota_that_is_used_up_only_delays_the_trial_that_is_planned(
    admin: Member, choice: Choice, quota: str
) -> None:
    def allow(runs: int) -> None:
        Team.objects.update(**{quota: runs})

    tuning = play(start(admin, choice), most=2)
    allow(0)
    tuning = play(tuning)
    planned = tuning.trials.filter(run=None).first()
    assert (tuning.state, tuning.finished_at, planned is not None) == ("running", None, True)
    assert tuning.sentence.startswith("The next trial waits, and is tried again by itself: The team's quota is used up")
    assert tuning.sentence in answer_of(tuning).reasons[0]
    TUNINGS.try_again()
    go_on_due(after_s=0)
    assert not Run.objects.filter(state=Run.State.QUEUED).exists()
    allow(1000)
    TUNINGS.try_again()
    TUNINGS.try_again()
    tuning.refresh_from_db()
    assert tuning.sentence == ""
    assert [config_of(run) for run in Run.objects.filter(state=Run.State.QUEUED)] == [planned and planned.config]
    assert play(tuning).outcome == "better"


def test_a_search_that_is_paused_while_it_waits_for_a_quota_stays_paused(admin: Member, choice: Choice) -> None:
    tuning = play(start(admin, choice), most=1)
    Team.objects.update(quota_runs_per_day=0)
    tuning = play(tuning)
    pause(admin, tuning)
    Team.objects.update(quota_runs_per_day=1000)
    TUNINGS.try_again()
    assert (tuning.sentence, Run.objects.filter(state=Run.State.QUEUED).exists()) == ("", False)
    resume(admin, tuning)
    assert Run.objects.filter(state=Run.State.QUEUED).count() == 1


def test_cancelling_the_search_or_its_trial_ends_both(admin: Member, choice: Choice) -> None:
    first = start(admin, choice)
    TUNINGS.cancel(admin, first)
    assert (first.state, Run.objects.get().outcome) == ("cancelled", "cancelled")
    second = start(admin, choice)
    cancel_run(admin, Run.objects.get(state=Run.State.QUEUED))
    second.refresh_from_db()
    assert (second.state, second.trials.exclude(run=None).count()) == ("cancelled", 1)
    trials = trials_of(second)
    assert ([one.result for one in shown(second, trials)], cost_of(second, trials).invalid) == (["cancelled"], 0)


def test_the_hours_end_a_search_like_its_runs_do(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice, budget_runs=300, budget_hours=2.0)
    for number in range(1, 400):
        queued = Run.objects.filter(state=Run.State.QUEUED).first()
        if queued is None:
            break
        finish_next(equal(config_of(queued), number))
        TuningTrial.objects.filter(run=queued).update(duration_s=240.0)
    tuning.refresh_from_db()
    assert tuning.state == "finished"
    assert tuning.winner is None
    assert 15 <= tuning.trials.exclude(run=None).count() <= 31


def lasting(tuning: Tuning, run_s: float, answer: Answer) -> Tuning:
    """Every trial until it is over, as `play`, each of so many seconds."""
    TUNINGS.work_out(tuning.pk)
    while (queued := Run.objects.filter(state=Run.State.QUEUED).first()) is not None:
        finish_next(answer(config_of(queued), queued.number))
        TuningTrial.objects.filter(run=queued).update(duration_s=run_s)
    tuning.refresh_from_db()
    return tuning


def test_hours_that_suffice_for_fewer_runs_than_a_search_needs_are_a_budget_too_small(
    admin: Member, choice: Choice
) -> None:
    tuning = lasting(start(admin, choice, budget_runs=60, budget_hours=1.0), 390.0, equal)
    assert (tuning.state, tuning.outcome) == ("finished", "budget_too_small")
    assert re.fullmatch(
        r"The hours suffice for (9|10) runs, and a search needs 20: about 2\.\d+ more hours would do\.", tuning.sentence
    )
    more = more_for(tuning, trials_over(tuning), tuning.more_runs or 0)
    assert more == more_to_look_for_others(tuning, trials_over(tuning))
    with pytest.raises(RequestError, match="Its hours suffice for 9 runs, and it had 60") as refused:
        add_budget(admin, tuning, runs=20)
    assert refused.value.field == "hours"
    tuning.refresh_from_db()
    assert (tuning.state, tuning.budget_runs) == ("finished", 60)
    add_budget(admin, tuning, runs=more.runs, hours=more.hours)
    assert tuning.state == "running"
    assert lasting(tuning, 390.0, equal).trials.count() > 12


def test_a_search_that_was_stopped_without_hours_goes_on_only_with_more_of_them(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice, budget_runs=60, budget_hours=1.0)
    finish_next(equal({}, 1))
    TuningTrial.objects.filter(result="ok").update(duration_s=3600.0)
    Tuning.objects.update(state="stopped", sentence="The hours were used up after 1 runs; 20 are needed.")
    tuning.refresh_from_db()
    with pytest.raises(RequestError, match="give more hours") as refused:
        resume(admin, tuning)
    assert refused.value.field == "hours"
    add_budget(admin, tuning, hours=30.0)
    assert tuning.state == "running"


@pytest.mark.parametrize(
    ("hours", "run_s", "more_runs", "runs", "added_hours", "said"),
    [
        (None, 240.0, 14, 14, 0.0, ""),
        (9.0, 240.0, 14, 14, 0.0, ""),  # hours enough for both
        (4.1, 240.0, 14, 14, 0.0, ""),  # and for no more
        (2.2, 240.0, 14, 0, 0.76, " They take about 0.76 hours more than it has."),  # 29 of 60 runs in these hours
        (2.2, 240.0, 40, 9, 2.67, " They take about 2.67 hours more than it has."),
    ],
)
def test_a_forecast_says_the_hours_too_where_they_end_the_search_before_its_runs(
    admin: Member, choice: Choice, hours: float | None, run_s: float, more_runs: int, runs: int, added_hours: float,
    said: str,
) -> None:  # fmt: skip
    tuning = start(admin, choice, budget_runs=60, budget_hours=9.0)
    tuning.budget_hours = hours
    over = [TuningTrial(position=n, purpose="explore", result="ok", duration_s=run_s) for n in range(29)]
    end = without_gain(tuning, over, BudgetTooSmall(f"About {more_runs} more runs would do.", more_runs))
    assert end.sentence == f"About {more_runs} more runs would do.{said}"
    assert more_for(tuning, over, more_runs) == More(runs, added_hours)


def test_more_budget_with_which_no_further_pair_can_be_made_is_no_look_at_those_that_were(
    admin: Member, choice: Choice
) -> None:
    tuning = start(admin, choice, budget_runs=60, budget_hours=20.0)
    tuning.trials.all().delete()
    for position, purpose in enumerate(["explore"] * 19 + ["confirm"] * 10):
        tuning.trials.create(position=position, purpose=purpose, config=tuning.default, why="", result="ok",
                             figure=1000.0, duration_s=240.0)  # fmt: skip
    Tuning.objects.update(budget_hours=2.2, paused=True)
    tuning.refresh_from_db()
    add_budget(admin, tuning, hours=0.01)
    assert (tuning.looks, tuning.looked_at) == (1, 0)
    add_budget(admin, tuning, hours=0.2)
    assert (tuning.looks, tuning.looked_at) == (2, 29)


@pytest.mark.parametrize(
    ("hours", "reduces", "outcome", "winner", "searched", "reverted", "left_runs", "of_them", "left_s"),
    [
        (None, False, "", None, 10, 0, 10, 0, 1000),
        (None, True, "", None, 10, 0, 58, 48, 5800),  # all three parameters back alone, then together, in 8 blocks
        (None, True, "nothing_better", None, 20, 0, 0, 0, 0),
        (None, True, "better", {"mode": "fast", "nproc": 5000}, 20, 5, 35, 35, 3500),
        (None, True, "better", {"mode": "fast"}, 20, 0, 0, 0, 0),  # without the one that differs there is the default
        (None, False, "better", {"mode": "fast", "nproc": 5000}, 20, 0, 40, 40, 4000),  # by the button
        (0.5, False, "", None, 10, 0, 8, 0, 800),
        (0.5, True, "", None, 10, 0, 8, 0, 800),
        (0.5, True, "better", {"mode": "fast", "nproc": 5000}, 12, 2, 4, 4, 400),
        (0.25, True, "", None, 10, 0, 0, 0, 0),
        (1.0, True, "", None, 0, 0, 68, 48, 1360),  # as long as the workload says
    ],
)
def test_at_most_so_many_runs_are_left_with_the_smallest_recipe_and_within_the_hours(
    admin: Member, choice: Choice, hours: float | None, reduces: bool, outcome: str, winner: dict[str, Any] | None,
    searched: int, reverted: int, left_runs: int, of_them: int, left_s: float,
) -> None:  # fmt: skip
    tuning = start(admin, choice, budget_runs=20, budget_hours=2.0, reduces=reduces)
    tuning.budget_hours, tuning.outcome = hours, outcome
    tuning.winner = {**tuning.default, **winner} if winner else None
    purposes = ["explore"] * searched + ["revert"] * reverted
    over = [TuningTrial(position=n, purpose=one, result="ok", duration_s=100.0) for n, one in enumerate(purposes)]
    cost = cost_of(tuning, over)
    assert (cost.left_runs, cost.left_reduction_runs) == (left_runs, of_them)
    assert cost.left is not None
    assert cost.left.total_seconds() == left_s


def test_what_is_left_at_first_is_enough_for_all_that_follows(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice, space={"parameters": SPACE["parameters"][1:]}, budget_runs=20, reduces=True)
    first = cost_of(tuning, trials_of(tuning))
    assert answer_of(tuning).reasons == ("0 runs are over, at most 60 to go, 40 of them for the smallest recipe.",)
    assert play(tuning).smallest is not None
    assert 20 < tuning.trials.count() <= first.left_runs


def test_a_run_that_cannot_be_carried_on_is_no_score(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice)
    run = Run.objects.get()
    give_up(run.pk, run.fence, "No worker could go on with it.", "")
    trial = tuning.trials.get(position=0)
    assert (trial.result, trial.figure) == ("invalid", None)
    TUNINGS.work_out(tuning.pk)
    assert Run.objects.filter(state=Run.State.QUEUED).count() == 1


@pytest.mark.parametrize(
    ("more", "field", "said"),
    [
        ({"space": {"parameters": [{"name": "heap"}]}}, "space.heap", "no parameter 'heap'"),
        ({"space": {"parameters": [{"name": "nproc", "low": 64}]}}, "space.nproc", "smallest and the largest"),
        ({"space": {"parameters": [{"name": "nofile", "low": 8, "high": 9000}]}}, "space.nofile", "below the minimum"),
        (
            {"space": {"parameters": [{"name": "nofile", "low": 9000, "high": 8000}]}},
            "space.nofile",
            "low must be smaller",
        ),
        ({"space": {"parameters": [{"name": "nofile", "low": 1024, "high": 2048}]}}, "space.nofile", "default"),
        ({"space": {"parameters": [{"name": "mode", "choices": ["plain", "odd"]}]}}, "space.mode", "not one of"),
        ({"space": {"parameters": [{"name": "mode"}, {"name": "mode"}]}}, "space", "name of its own"),
        ({"space": {"parameters": [{"name": "mode", "only_when": "x = 1"}]}}, "space.mode", "on x, which must be"),
        ({"space": {"parameters": [{"name": "mode"}], "forbidden": ["heap > 4"]}}, "space.forbidden", "heap"),
        ({"space": {"parameters": [{"name": "mode"}], "forbidden": ["quick"]}}, "space.forbidden", "is not PARAMETER"),
        (
            {"space": {**SPACE, "forbidden": ["mode = fats"]}},
            "space.forbidden",
            "never 'fats' here; it may be plain, fast",
        ),
        ({"space": {**SPACE, "forbidden": ["mode == fast"]}}, "space.forbidden", "never '= fast'"),
        ({"space": {**SPACE, "forbidden": ["nproc >= 2048"]}}, "space.forbidden", "'nproc >= 2048' is not PARAMETER ="),
        ({"space": {**SPACE, "forbidden": ["nproc == 2048"]}}, "space.forbidden", "'nproc == 2048' is not PARAMETER ="),
        ({"space": {**SPACE, "forbidden": ["nproc = 9"]}}, "space.forbidden", "never 9 here; it may be 1024 to 8192"),
        ({"space": {**SPACE, "forbidden": ["mode > fast and nproc > 2048"]}}, "space.forbidden", "mode has no order"),
        (
            {"space": {**SPACE, "forbidden": ["nofile > 65536"]}},
            "space.forbidden",
            "nofile is never above 65536 here; it may be 1024 to 65536.",
        ),
        (
            {"space": {**SPACE, "forbidden": ["nproc < 64"]}},
            "space.forbidden",
            "nproc is never below 64 here; it may be 64 to 8192.",
        ),
        ({"space": {**SPACE, "forbidden": ["nproc > mode"]}}, "space.forbidden", "mode has no order"),
        (
            {"space": {"parameters": [{"name": "mode"}, {**SPACE["parameters"][1], "only_when": "mode = Fast"}]}},
            "space.nproc",
            "mode is never 'Fast'",
        ),
        ({"space": {"parameters": [{"name": "mode", "needs": "reboot"}]}}, "space.mode", "reboots no host"),
        ({"space": {"parameters": []}}, "space.parameters", "at least 1"),
        ({"space": {"parameters": [{"name": "nproc", "choices": [4096]}]}}, "space.nproc", "as the fixed parameter"),
        ({"space": {"parameters": [{"name": "mode", "choices": ["plain"]}]}}, "space.mode", "as the fixed parameter"),
        (
            {"space": {**SPACE, "starts": [{"config": {"heap": 1}}]}},
            "space.starts",
            "Start 1: heap: it is not searched",
        ),
        ({"space": {**SPACE, "starts": [{"config": {"nproc": 9}}]}}, "space.starts", "outside of what may be tried"),
        (
            {"space": {**SPACE, "starts": [{"config": {"nproc": "a few"}}]}},
            "space.starts",
            "Start 1: Parameter nproc: ",
        ),
        ({"space": {"parameters": [{"name": "nproc", "choices": ["4096", "x"]}]}}, "space.nproc", "'x' is not of type"),
        ({"space": {**SPACE, "starts": [{"config": {"nproc": 2048.0}}]}}, "space.starts", "2048.0 is not of type int"),
        ({"metric": "speed"}, "metric", "no metric 'speed'"),
        ({"metric": "errors_total"}, "metric", "to which nothing has a ratio: make it a limit"),
        ({"limits": [LimitWanted("speed", at_most=1)]}, "limits", "no metric 'speed'"),
        ({"limits": [LimitWanted("latency_p99_ms")]}, "limits", "at_most"),
        ({"limits": [LimitWanted("latency_p99_ms", at_most=math.inf)]}, "limits", "inf is no number to keep"),
        ({"limits": [LimitWanted("latency_p99_ms", at_most=math.nan)]}, "limits", "nan is no number to keep"),
        ({"limits": [LimitWanted("throughput_rps", at_least=1e-310)]}, "limits", "1e-310 is no number to keep"),
        ({"limits": [LimitWanted("sut.memory_used_bytes", 1e9)]}, "limits", "known: throughput_rps"),
        ({"metric": "web.sent_bytes_per_s"}, "metric", "no metric 'web.sent_bytes_per_s'"),
        ({"margin_ratio": 0.0}, "margin_ratio", "between 0 and 1"),
        ({"budget_runs": 10}, "budget_runs", "20 to 300"),
        ({"budget_hours": 0.001}, "budget_hours", "hours or more"),
        ({"name": " "}, "name", "name"),
    ],
)
def test_what_cannot_be_searched_is_refused_by_field_before_anything_is_stored(
    admin: Member, stock: dict[str, Any], choice: Choice, more: dict[str, Any], field: str, said: str
) -> None:
    system_of(admin, stock)  # that the team has systems makes no single server one
    with pytest.raises(RequestError) as error:
        start(admin, choice, **more)
    assert error.value.field == field
    assert said in error.value.message
    assert not Tuning.objects.exists()
    assert not Run.objects.exists()


def test_a_value_that_a_step_refuses_is_found_before_the_first_run(admin: Member, stock: dict[str, Any]) -> None:
    body = {
        "parameters": {"files": {"type": "int", "default": 4096}},
        "steps": [{"kind": "limits", "nofile": "${files}"}],
    }
    choice = Choice(**stock | {"recipe": save_version(admin, Recipe, "limits", body)})
    with pytest.raises(RequestError) as error:
        start(admin, choice, space={"parameters": [{"name": "files", "low": -5, "high": 9000}]})
    assert error.value.field == "space.files"
    assert "files = -5" in error.value.message


def test_values_that_a_step_refuses_together_are_refused_without_a_run(admin: Member, stock: dict[str, Any]) -> None:
    body = {
        "parameters": {"a": {"type": "int", "default": 10}, "b": {"type": "int", "default": 1}},
        "steps": [{"kind": "limits", "nofile": "${a}${b}"}],
    }
    choice = Choice(**stock | {"recipe": save_version(admin, Recipe, "limits", body)})
    digits = [{"name": name, "low": 2 if name == "a" else 1, "high": 99_999_999} for name in ("a", "b")]
    tuning = play(start(admin, choice, space={"parameters": digits}), equal, most=3)
    refused = tuning.trials.filter(run=None, result="refused")
    assert refused.exists()
    assert all("nofile" in one.reason for one in refused)
    assert tuning.state in ("running", "finished")


def test_the_smallest_recipe_is_looked_for_although_the_hours_are_used_up(admin: Member, choice: Choice) -> None:
    tuning = play(start(admin, choice, space={"parameters": SPACE["parameters"][1:]}, budget_runs=20, budget_hours=2.0))
    assert (tuning.outcome, tuning.smallest) == ("better", None)
    tuning.trials.update(duration_s=7200 / tuning.trials.count())
    find_smallest(admin, tuning)
    assert tuning.budget_hours is not None
    assert tuning.budget_hours > 2.0  # its runs come on top
    tuning = play(tuning)
    assert (tuning.state, tuning.smallest is not None) == ("finished", True)


def test_conditions_and_forbidden_mixtures_are_kept(admin: Member, choice: Choice) -> None:
    space = {
        "parameters": [
            {"name": "mode"},
            {"name": "nproc", "low": 1024, "high": 8192, "only_when": "mode = fast"},
            {"name": "nofile", "low": 1024, "high": 65536, "log": True},
        ],
        "forbidden": ["mode = fast and nofile > 30000"],
    }
    tuning = play(start(admin, choice, space=space, budget_runs=20), equal)
    configs = [one.config for one in tuning.trials.all()]
    assert not [one for one in configs if one["mode"] == "fast" and one["nofile"] > 30000]
    plain = [one for one in configs if one["mode"] == "plain"]
    assert len({one["nofile"] for one in plain}) > 1
    assert {one["nproc"] for one in plain} == {tuning.default["nproc"]}  # there it does not count
    assert len({one["nproc"] for one in configs}) > 1


def test_a_stored_search_of_a_parameter_with_one_value_goes_on_to_its_answer(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice, budget_runs=20)
    tuning.space["parameters"][0] = {"name": "nofile", "choices": [4096]}
    tuning.save()
    tuning = play(tuning)
    assert (tuning.state, tuning.outcome) == ("finished", "better"), tuning.sentence
    space = space_to_search(tuning)
    assert {space.positions([one.config])[0][0] for one in tuning.trials.all()} == {0.5}


def test_choices_and_starts_may_be_texts_of_the_type_that_the_recipe_declares(admin: Member, choice: Choice) -> None:
    space = {
        "parameters": [{"name": "nofile", "choices": ["4096", 8192]}, {"name": "mode"}],
        "starts": [{"config": {"nofile": "8192", "mode": "fast"}}],
    }
    tuning = start(admin, choice, space=space)
    assert tuning.space["parameters"][0]["choices"] == [4096, 8192]
    assert tuning.space["starts"][0]["config"] == {"nofile": 8192, "mode": "fast"}


def test_nothing_more_is_tried_or_recommended_in_a_region_that_was_left_out(admin: Member, choice: Choice) -> None:
    tuning = play(start(admin, choice, budget_runs=24), most=12)
    before = set(tuning.trials.exclude(result="").values_list("pk", flat=True))
    assert tuning.trials.filter(pk__in=before, config__mode="fast").exists()
    leave_out(admin, tuning, "mode = fast and nproc > 3000")
    under_way = Run.objects.get(state=Run.State.QUEUED)
    tuning = play(tuning)
    later = tuning.trials.exclude(pk__in=before).exclude(run=under_way)
    assert later.filter(config__mode="fast").exists()
    assert not later.filter(config__mode="fast", config__nproc__gt=3000).exists()
    assert tuning.state == "finished"
    for config in filter(None, (tuning.winner, (tuning.best or {}).get("config"))):
        assert config["mode"] == "plain" or config["nproc"] <= 3000
    rows = shown(tuning, trials_of(tuning))
    assert {one.trial.config["mode"] for one in rows if one.is_left_out} == {"fast"}
    assert [one.trial.position for one in rows] == list(range(len(rows)))
    assert len(rows) <= 24
    with pytest.raises(Conflict):
        leave_out(admin, tuning, "nproc > 8000")


@pytest.mark.parametrize(
    ("mixture", "said"),
    [
        ("mode = plain", "The default lies in this region"),
        ("heap > 4", "heap is not searched"),
        ("quick", "is not PARAMETER"),
        ("nproc > many", "not of type int"),
        ("mode = Fast and nproc > 2048", "mode is never 'Fast'"),
        (" ", "at least 1"),
    ],
)
def test_a_region_that_cannot_be_left_out_is_refused(admin: Member, choice: Choice, mixture: str, said: str) -> None:
    tuning = start(admin, choice)
    before = tuning.space
    with pytest.raises(RequestError) as error:
        leave_out(admin, tuning, mixture)
    assert error.value.field == "mixture"
    assert said in error.value.message
    tuning.refresh_from_db()
    assert tuning.space == before


def test_a_region_is_left_out_beside_mixtures_that_were_taken_before_they_were_looked_at(
    admin: Member, choice: Choice
) -> None:
    tuning = start(admin, choice)
    tuning.space["forbidden"] = ["mode = Fast and nproc > 2048"]
    tuning.save()
    leave_out(admin, tuning, "nofile > 60000")
    assert tuning.space["forbidden"] == ["mode = Fast and nproc > 2048", "nofile > 60000"]
    with pytest.raises(RequestError, match="left out already"):
        leave_out(admin, tuning, "nofile > 60000 ")


def test_a_condition_may_name_values_beyond_bounds_that_were_narrowed(admin: Member, choice: Choice) -> None:
    narrowed = [{"name": "nofile", "low": 4000, "high": 9000}, {"name": "mode", "only_when": "nofile = 8192, 65536"}]
    assert start(admin, choice, space={"parameters": narrowed}).state == "running"


def test_a_search_begins_with_the_answers_of_earlier_ones_and_measures_them(admin: Member, choice: Choice) -> None:
    there = start(admin, replace(choice, sut=ready_host(admin, "sut-2", roles="sut")))
    here = start(admin, choice)
    for number, (row, mode) in enumerate(((here, "fast"), (there, "plain"))):
        TUNINGS.cancel(admin, row)
        winner = {**row.default, "mode": mode, "nproc": 2048 + number}
        Tuning.objects.filter(pk=row.pk).update(state="finished", outcome="better", winner=winner)
    given = {"config": {"nofile": 2048}, "why": "what we ran last year"}
    tuning = play(start(admin, choice, space={**SPACE, "starts": [given]}), most=1)
    planned = list(tuning.trials.values_list("purpose", "why", "config__nofile", "config__nproc"))
    assert planned == [
        ("control", "the default, to compare with", 4096, 4096),
        ("explore", "what we ran last year", 2048, 4096),
        ("explore", f"the answer of tuning search {here.pk} here", 4096, 2048),
        ("explore", f"the answer of tuning search {there.pk} on sut-2", 4096, 2049),
    ]
    tuning = play(tuning, most=4)
    assert tuning.trials.filter(result="ok").count() == 5
    assert tuning.trials.get(position=4).why == "spread over the space"
    assert start(admin, choice, warm=False).space["starts"] == []


def test_a_variant_of_an_experiment_that_was_better_is_a_start_where_it_fits_the_space(
    admin: Member, choice: Choice
) -> None:
    same = {name: getattr(choice, name) for name in ("application", "recipe", "sut")}
    experiment = Experiment.objects.create(team=admin.team, name="Modes", workload=choice.workload)
    made = [
        Variant.objects.create(
            experiment=experiment, name=name, position=place, parameters=parameters, is_baseline=not place,
            drivers=driver_set(choice.drivers, {}), **same,
        )
        for place, (name, parameters) in enumerate(
            (("plain", {}), ("fast", {"mode": "fast"}), ("many", {"nproc": 100_000}), ("worse", {"nofile": 2048}))
        )
    ]  # fmt: skip
    for candidate, outcome in zip(made[1:], ("better", "better", "worse"), strict=True):
        StoredVerdict.objects.create(
            experiment=experiment, baseline=made[0], candidate=candidate, metric="throughput_rps", outcome=outcome,
            sentence="", numbers={},
        )  # fmt: skip
    planned = play(start(admin, choice), most=1).trials.values_list("why", "config__mode")
    assert list(planned[1:]) == [(f"fast of experiment {experiment.pk}, which was better here", "fast")]


@pytest.mark.parametrize(
    ("earlier", "given", "starts"),
    [
        ({}, {}, []),
        ({"old": {"type": "int", "default": 1}}, {"old": 2}, []),
        ({"old": {"type": "int"}, "mode": {"type": "str"}}, {"old": 2, "mode": "fast"}, [{"mode": "fast"}]),
        ({"mode": {"type": "str"}, "nproc": {"type": "int"}}, {"mode": "odd", "nproc": 2048}, []),
        ({"nproc": {"type": "int"}}, {"nproc": 9}, []),
        ({"nproc": {"type": "str"}}, {"nproc": "2048"}, []),
        ({"nproc": {"type": "float"}}, {"nproc": 2048.0}, []),
        ({"nproc": {"type": "bool"}}, {"nproc": True}, []),
        ({f"p{number}": {"type": "int", "default": 1} for number in range(201)}, {}, []),
    ],
)
def test_what_another_version_of_the_recipe_found_is_a_start_only_by_the_parameters_that_both_have(
    admin: Member, stock: dict[str, Any], earlier: dict[str, Any], given: dict[str, Any], starts: list[dict[str, Any]]
) -> None:
    before = save_version(admin, Recipe, "limits", {"parameters": earlier, "steps": []})
    choice = Choice(**stock | {"recipe": save_version(admin, Recipe, "limits", RECIPE)})
    experiment = Experiment.objects.create(team=admin.team, name="Before", workload=choice.workload)
    plain, better = (
        Variant.objects.create(
            experiment=experiment, name=name, position=place, parameters=parameters, is_baseline=not place,
            drivers=driver_set(choice.drivers, {}), application=choice.application, recipe=before, sut=choice.sut,
        )
        for place, (name, parameters) in enumerate((("plain", {}), ("better", given)))
    )  # fmt: skip
    StoredVerdict.objects.create(
        experiment=experiment, baseline=plain, candidate=better, metric="throughput_rps", outcome="better",
        sentence="", numbers={},
    )  # fmt: skip
    tuning = start(admin, choice)
    assert [(one["config"], one["known"]) for one in tuning.space["starts"]] == [(one, True) for one in starts]


def test_figures_of_trials_that_were_selected_are_marked_where_their_runs_are_compared(
    admin: Member, choice: Choice
) -> None:
    tuning = play(start(admin, choice, budget_runs=20), most=10)
    runs = {
        purpose: list(tuning.trials.filter(purpose=purpose, result="ok").values_list("run__number", flat=True))
        for purpose in ("control", "explore")
    }
    marked = Confounder("selection", ("none", "of a tuning search: selected, optimistic"))
    found = compare(comparable_runs(admin.team, [runs["control"][0], runs["explore"][0]]))
    assert (found.confounders, found.comparable) == ((marked,), False)
    assert compare(comparable_runs(admin.team, runs["control"][:2])).comparable


def test_a_forecast_beyond_what_a_search_may_have_says_what_else_to_do(admin: Member, choice: Choice) -> None:
    tuning = start(admin, choice, budget_runs=40)
    for more_runs, is_too_much in ((260, False), (261, True)):
        end = without_gain(tuning, [], BudgetTooSmall(f"About {more_runs} more runs would do.", more_runs))
        assert (tuning.outcome, tuning.more_runs) == ("budget_too_small", more_runs)
        assert ("A search has at most 300: measure longer in each run" in end.sentence) == is_too_much


def test_a_viewer_changes_nothing(admin: Member, choice: Choice, make_member: MakeMember) -> None:
    viewer, tuning = make_member(admin.team, Role.VIEWER, "vic"), start(admin, choice)
    for act in (pause, resume, find_smallest, TUNINGS.cancel):
        with pytest.raises(Forbidden):
            act(viewer, tuning)
    with pytest.raises(Forbidden):
        add_budget(viewer, tuning, runs=5)
    with pytest.raises(Forbidden):
        leave_out(viewer, tuning, "nproc > 8000")
