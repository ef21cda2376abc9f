"""Searches: each trial is a run, its end launches the next one; repeated, cancelled and hopeless ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents import events as e
from experiments.asking.launching.cancelling import cancel_run
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import rerun
from experiments.asking.searches.live import SEARCHES, start_search
from experiments.asking.searches.reading import cost_of
from experiments.models import CapacitySearch, Host, Member, Role, Run, SearchTrial, Series, Team, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.running.ending.conclusion import give_up
from tests.experiments.conftest import WORKLOAD, MakeMember
from tests.experiments.finished import finish_next, report, whole_run

RATED = {"driver": {"kind": "wrk2", "connections": 16, "threads": 2, "offered_rate_rps": 10}}
Server = Callable[[float], dict[str, Any]]


@pytest.fixture
def choice(admin: Member, stock: dict[str, Any]) -> Choice:
    return Choice(**stock | {"workload": save_version(admin, Workload, "rated", WORKLOAD | RATED)})


def start(member: Member, choice: Choice, **more: Any) -> CapacitySearch:
    given: dict[str, Any] = {
        "name": "How much?",
        "objective_metric": "latency_p99_ms",
        "objective_ms": 50.0,
        "low_rps": 1000,
        "high_rps": 4000,
        "width_ratio": 0.1,
    }
    return start_search(member, choice, **given | more)


def offered(run: Run) -> float:
    assert run.spec is not None
    return float(run.spec["workload"]["driver"]["offered_rate_rps"])


def load(rate_rps: float, *, reached: float = 1.0, p99_ms: float = 20.0, **more: Any) -> dict[str, Any]:
    figures = {"tool": "wrk2", "format": "wrk2-text", "load_model": "open", "latency_basis": "response_time"}
    more = {"offered_rate_rps": rate_rps, "latency_p99_ms": p99_ms, "latency_mean_ms": 5.0, **more}
    return report(rate_rps * reached, **figures, **more)


def server(capacity_rps: float) -> Server:
    """Reaches what it is offered up to its capacity, slowly near to it."""
    return lambda rate: load(rate, p99_ms=20.0 if rate <= capacity_rps else 90.0)


def play(search: CapacitySearch, answer: Server) -> CapacitySearch:
    """Every trial that the search launches, until it is over."""
    for _ in range(60):
        queued = Run.objects.filter(state=Run.State.QUEUED).first()
        if queued is None:
            break
        finish_next(whole_run(answer(offered(queued))))
    search.refresh_from_db()
    return search


def test_a_search_runs_trial_after_trial_until_it_has_an_interval(admin: Member, choice: Choice) -> None:
    search = play(start(admin, choice), server(2300))
    assert search.state == "finished"
    assert search.low_rps is not None
    assert search.high_rps is not None
    assert search.low_rps <= 2300 < search.high_rps
    assert (search.high_rps - search.low_rps) / search.high_rps <= 0.1
    trials = list(search.trials.all())
    assert [trial.position for trial in trials] == list(range(len(trials)))
    assert [trial.rate_rps for trial in trials[:2]] == [1000, 4000]
    assert all(trial.result == ("pass" if trial.rate_rps <= 2300 else "fail") for trial in trials)
    assert f"{search.low_rps:,.0f} requests/s are sustained with latency p99 ≤ 50 ms" in search.sentence
    assert "At least 90 % of such intervals hold the limit" in search.sentence
    assert search.coverage_ratio == 0.9
    assert cost_of(search).trials == len(trials)


def test_a_trial_is_an_ordinary_labelled_run_without_a_history(admin: Member, choice: Choice) -> None:
    search = start(admin, choice, labels={"commit": "4f2c"})
    run = Run.objects.get()
    assert run.labels == {"commit": "4f2c", "search": str(search.pk), "offered_rate_rps": "1000"}
    assert offered(run) == 1000
    finished = finish_next(whole_run(load(1000)))
    assert finished.fingerprint
    assert not Series.objects.exists()
    again = rerun(admin, finished)
    assert offered(again) == 1000


def test_a_trial_that_ends_twice_launches_one_next_trial(admin: Member, choice: Choice) -> None:
    start(admin, choice)
    run = finish_next(whole_run(load(1000)))
    before = Run.objects.count()
    SEARCHES.step_ended(run)
    assert Run.objects.count() == before == 2


@pytest.mark.parametrize(
    ("figures", "result", "reason"),
    [
        (load(1000, errors_connect=3), "fail", "3 errors"),
        (load(1000, reached=0.9), "fail", "90.0 %"),
        (load(1000, p99_ms=51), "fail", "objective 50 ms: missed"),
        (load(1000, duration_s=5.0, requests=5000), "invalid", "stopped after about 5 s"),
        (load(1000), "pass", "objective 50 ms"),
    ],
)
def test_each_trial_says_why_it_passed_or_failed(
    admin: Member, choice: Choice, figures: dict[str, Any], result: str, reason: str
) -> None:
    start(admin, choice)
    finish_next(whole_run(figures))
    trial = SearchTrial.objects.get(position=0)
    assert trial.result == result
    assert reason in trial.reason


def test_an_invalid_trial_is_repeated_a_few_times_and_then_the_search_stops(admin: Member, choice: Choice) -> None:
    search = play(start(admin, choice), lambda rate: load(rate, duration_s=5.0, requests=int(rate * 5)))
    assert search.state == "stopped"
    assert [trial.rate_rps for trial in search.trials.all()] == [1000, 1000, 1000]
    assert "3 trials in a row at 1,000 requests/s measured nothing that counts" in search.sentence
    assert "stopped after about 5 s" in search.sentence


def test_what_cannot_start_as_it_is_specified_stops_the_search_at_once_with_the_reason(
    admin: Member, choice: Choice
) -> None:
    search = start(admin, choice)
    why = e.Failed(
        "facts", "Server and load tool would share CPU 0 of one machine.", "Give CPU sets.", False, "specification"
    )
    finish_next([e.PhaseStarted("facts"), why])
    search.refresh_from_db()
    assert (search.state, search.trials.count()) == ("stopped", 1)
    assert search.sentence == "Server and load tool would share CPU 0 of one machine. Give CPU sets."


def test_an_objective_that_the_tool_does_not_report_stops_the_search_at_once(admin: Member, choice: Choice) -> None:
    search = play(start(admin, choice, objective_metric="latency_p99.9_ms"), lambda rate: load(rate))
    assert (search.state, search.trials.count()) == ("stopped", 1)
    assert search.sentence == "The load tool does not report latency p99.9; choose another objective."


def test_a_quota_that_is_used_up_only_delays_the_next_trial(admin: Member, choice: Choice) -> None:
    search = start(admin, choice)
    Team.objects.update(quota_runs_per_day=1)
    search = play(search, server(2300))
    assert (search.state, search.trials.count()) == ("running", 1)
    assert search.sentence.startswith("The next trial waits, and is tried again by itself: The team's quota is used up")
    Team.objects.update(quota_runs_per_day=1000)
    SEARCHES.try_again()
    search = play(search, server(2300))
    assert search.state == "finished"
    assert "requests/s are sustained" in search.sentence


def test_what_fails_while_a_search_is_tried_again_stops_it_and_no_other(
    admin: Member, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = start(admin, choice)
    Team.objects.update(quota_runs_per_day=1)
    search = play(search, server(2300))
    monkeypatch.setattr("experiments.asking.searches.live.next_step", None)
    SEARCHES.try_again()
    search.refresh_from_db()
    assert (search.state, "BenchHub failed to go on after it waited" in search.sentence) == ("stopped", True)


def test_cancelling_the_search_ends_the_trial_that_waits(admin: Member, choice: Choice) -> None:
    search = start(admin, choice)
    SEARCHES.cancel(admin, search)
    assert (search.state, search.sentence) == ("cancelled", "Cancelled by ada.")
    run = Run.objects.get()
    assert (run.state, run.outcome) == ("finished", "cancelled")
    with pytest.raises(Conflict):
        SEARCHES.cancel(admin, search)


def test_cancelling_ends_the_trial_that_followed_meanwhile(
    admin: Member, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = start(admin, choice)
    hold, ends = SEARCHES.hold_open_step, [finish_next]

    def hold_when_it_has_ended(inquiry: CapacitySearch) -> SearchTrial | None:
        step = hold(inquiry)
        while ends:
            ends.pop()(whole_run(load(1000)))
        return step

    monkeypatch.setattr(SEARCHES, "hold_open_step", hold_when_it_has_ended)
    SEARCHES.cancel(admin, search)
    assert search.state == "cancelled"
    assert [run.outcome for run in Run.objects.order_by("number")] == ["succeeded", "cancelled"]


def test_cancelling_the_trial_ends_the_search(admin: Member, choice: Choice) -> None:
    search = start(admin, choice)
    cancel_run(admin, Run.objects.get())
    search.refresh_from_db()
    assert search.state == "cancelled"
    assert Run.objects.count() == 1


def test_the_search_stops_when_its_member_may_no_longer_launch(
    admin: Member, choice: Choice, make_member: MakeMember
) -> None:
    other = make_member(admin.team, Role.ADMIN, "eve")
    search = start(other, choice)
    Member.objects.filter(pk=other.pk).update(role=Role.VIEWER)
    finish_next(whole_run(load(1000)))
    search.refresh_from_db()
    assert search.state == "stopped"
    assert "could not be launched: You may not launch runs on" in search.sentence
    third = make_member(admin.team, Role.ADMIN, "mallory")
    gone = start(third, choice)
    third.delete()
    finish_next(whole_run(load(1000)))
    gone.refresh_from_db()
    assert gone.sentence == "Whoever started it is no longer a member of the team."


def test_the_search_stops_when_the_account_of_its_owner_is_closed(
    admin: Member, choice: Choice, make_member: MakeMember
) -> None:
    eve = make_member(admin.team, Role.ADMIN, "eve")
    search = start(eve, choice)
    eve.user.is_active = False
    eve.user.save()
    finish_next(whole_run(load(1000)))
    search.refresh_from_db()
    assert (search.state, Run.objects.count()) == ("stopped", 1)
    assert search.sentence == "The account of whoever started it is closed."


def test_a_search_that_cannot_go_on_lets_its_run_end(admin: Member, choice: Choice) -> None:
    search = start(admin, choice)
    SearchTrial.objects.update(rate_rps=0)  # as no search would have asked for
    run = finish_next(whole_run(load(1000)))
    assert (run.state, run.outcome, run.throughput_rps) == ("finished", "succeeded", 1000)
    search.refresh_from_db()
    assert (search.state, search.finished_at is None) == ("stopped", False)
    assert search.sentence.startswith("BenchHub failed to go on after run #1.")


def test_a_search_that_cannot_go_on_stops_with_a_run_that_was_given_up(admin: Member, choice: Choice) -> None:
    search = start(admin, choice)
    SearchTrial.objects.update(rate_rps=0)  # as no search would have asked for
    run = Run.objects.get()
    give_up(run.pk, run.fence, "It was lost.", "")
    search.refresh_from_db()
    assert search.state == "stopped"
    assert search.sentence.startswith("BenchHub failed to go on after run #1.")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"objective_metric": "throughput_rps"}, "objective_metric"),
        ({"objective_ms": 0}, "objective_ms"),
        ({"low_rps": 4000}, "low_rps"),
        ({"low_rps": 99, "high_rps": 500}, "low_rps"),
        ({"low_rps": 10.2, "high_rps": 10.4, "objective_metric": "latency_mean_ms"}, "high_rps"),
        ({"width_ratio": 0.9}, "width_ratio"),
    ],
)
def test_what_makes_no_search_is_refused_at_its_field(
    admin: Member, choice: Choice, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(RequestError) as refusal:
        start(admin, choice, **given)
    assert refusal.value.field == field
    assert not CapacitySearch.objects.exists()


def test_a_workload_whose_tool_has_no_rate_is_refused(admin: Member, stock: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as refusal:
        start(admin, Choice(**stock))
    assert refusal.value.field == "workload"
    assert "wrk cannot offer a rate" in refusal.value.message


def test_a_search_needs_the_right_to_launch_on_its_hosts(
    choice: Choice, make_member: MakeMember, admin: Member
) -> None:
    viewer = make_member(admin.team, Role.LAUNCHER, "vera")
    with pytest.raises(Forbidden):
        start(viewer, choice)
    assert Host.objects.count() == 2
