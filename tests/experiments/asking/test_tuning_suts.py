"""Several equal servers of a tuning search, its confirmation on another day or server, and rounds worked out later."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from agents.events import AnyEvent
from experiments.asking.launching.choices import Choice
from experiments.asking.tunings import rounds
from experiments.asking.tunings.due import go_on_due
from experiments.asking.tunings.live import TUNINGS
from experiments.asking.tunings.rounds import Question, Worked
from experiments.asking.tunings.steering import find_smallest, leave_out, pause, resume
from experiments.models import HardwareProfile, Host, Member, Run, Team, Tuning
from experiments.registry.database_clock import database_now
from experiments.registry.errors import RequestError
from tests.experiments.asking.test_tunings import SPACE, choice, play, start
from tests.experiments.conftest import ready_host
from tests.experiments.finished import finish_next, report, whole_run

__all__ = ["choice"]

FACTS = {"cpu.model": "test", "cpu.count": "8", "memory.total_bytes": "67000000000"}
SMALL_SPACE = {"parameters": SPACE["parameters"][1:]}
SPEED = {"sut-1": 1.0, "sut-2": 0.9, "sut-3": 1.1}


def known(host: Host, facts: dict[str, str] | None = None, digest: str = "a" * 64) -> Host:
    """The host as a look at it leaves it."""
    host.profile, _ = HardwareProfile.objects.get_or_create(
        team=host.team, digest=digest, defaults={"facts": facts or FACTS}
    )
    host.save(update_fields=["profile"])
    return host


@pytest.fixture
def others(admin: Member, choice: Choice) -> list[Host]:
    """Two servers that are equal to the SUT."""
    known(choice.sut)
    return [known(ready_host(admin, f"sut-{number}", roles="sut")) for number in (2, 3)]


def of_hosts(config: dict[str, Any], number: int) -> list[AnyEvent]:
    """A mode that is a quarter faster, on servers that differ."""
    run = Run.objects.select_related("sut").get(number=number)
    assert run.sut is not None
    wiggle = 1 + 0.004 * ((number * 7) % 5 - 2)
    return whole_run(report((1250.0 if config["mode"] == "fast" else 1000.0) * SPEED[run.sut.name] * wiggle))


def hosts_of_blocks(tuning: Tuning, purpose: str) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for one in tuning.trials.filter(purpose=purpose).exclude(run=None):
        found.setdefault(one.block, set()).add(one.host)
    return found


def test_equal_servers_divide_the_trials_and_each_block_stays_on_one(
    admin: Member, choice: Choice, others: list[Host]
) -> None:
    tuning = play(start(admin, choice, space=SMALL_SPACE, budget_runs=30, further_suts=others), of_hosts)
    launched = tuning.trials.select_related("run__sut").exclude(run=None)
    names = [host.name for host in tuning.suts]
    assert names == ["sut-1", "sut-2", "sut-3"]
    assert [one.run.sut.name for one in launched if one.run and one.run.sut] == [names[one.host] for one in launched]
    assert [one.host for one in launched[:4]] == [0, 1, 2, 0]
    assert (tuning.outcome, (tuning.winner or {}).get("mode")) == ("better", "fast")
    assert (tuning.low_ratio or 0) <= 0.25 <= (tuning.high_ratio or 0)
    find_smallest(admin, tuning)
    tuning = play(tuning, of_hosts)
    for purpose in ("confirm", "revert"):
        blocks = hosts_of_blocks(tuning, purpose)
        assert {len(hosts) for hosts in blocks.values()} == {1}
        assert set().union(*blocks.values()) == {0, 1, 2}


def test_a_server_out_of_service_stops_its_share_and_takes_it_again_when_it_is_back(
    admin: Member, choice: Choice, others: list[Host]
) -> None:
    tuning = play(start(admin, choice, space=SMALL_SPACE, budget_runs=30, further_suts=others), of_hosts, most=3)
    Host.objects.filter(pk=others[1].pk).update(state=Host.State.UNREACHABLE)
    tuning = play(tuning, of_hosts, most=6)
    ran = [one.host for one in tuning.trials.exclude(run=None)]
    assert ran[:3] == [0, 1, 2]
    assert set(ran[3:]) == {0, 1}
    Host.objects.filter(pk=others[1].pk).update(state=Host.State.READY)
    tuning = play(tuning, of_hosts)
    assert 2 in [one.host for one in tuning.trials.exclude(run=None)[len(ran) :]]
    assert tuning.outcome == "better"


def test_half_a_pair_on_a_server_out_of_service_is_no_evidence_and_another_server_has_a_whole_one(
    admin: Member, choice: Choice, others: list[Host]
) -> None:
    tuning = start(admin, choice, space=SMALL_SPACE, budget_runs=30, further_suts=others[:1])
    while not tuning.trials.filter(purpose="confirm", host=1, result="ok").exists():
        tuning = play(tuning, of_hosts, most=1)
    Host.objects.filter(pk=others[0].pk).update(state=Host.State.DRAINED)
    half = tuning.trials.get(purpose="confirm", host=1, result="ok").block
    queued = Run.objects.filter(state=Run.State.QUEUED, sut=others[0])
    assert queued.count() == 1, "the other half was launched with the end of the first, and waits"
    queued.update(sut=choice.sut)  # no run may start there; what it measured elsewhere is not looked at below
    tuning = play(tuning, of_hosts)
    after = tuning.trials.filter(purpose="confirm", block__gt=half).exclude(run=None)
    assert {one.host for one in after} == {0}
    assert tuning.outcome == "better"


def test_where_no_server_is_in_service_the_next_trial_waits_for_its_own(
    admin: Member, choice: Choice, others: list[Host]
) -> None:
    tuning = play(start(admin, choice, further_suts=others), of_hosts, most=1)
    Host.objects.filter(team=admin.team, roles="sut").update(state=Host.State.DRAINED)
    tuning = play(tuning, of_hosts, most=0)
    assert (tuning.state, Run.objects.get(state=Run.State.QUEUED).sut) == ("running", others[0])


def test_the_confirmation_is_made_on_the_server_that_is_named_for_it_alone(
    admin: Member, choice: Choice, others: list[Host]
) -> None:
    given = {"space": SMALL_SPACE, "budget_runs": 30, "further_suts": others[:1], "confirm_sut": others[1]}
    tuning = play(start(admin, choice, **given), of_hosts)
    where = {purpose: set(hosts) for purpose, hosts in (("explore", {0, 1}), ("confirm", {2}))}
    for purpose, hosts in where.items():
        assert {one.host for one in tuning.trials.filter(purpose=purpose)} == hosts
    assert {one.run.sut for one in tuning.trials.filter(purpose="confirm") if one.run} == {others[1]}
    assert tuning.outcome == "better"


def test_a_search_pauses_before_its_first_pair_until_its_time_has_come(admin: Member, choice: Choice) -> None:
    tuning = play(start(admin, choice, space=SMALL_SPACE, budget_runs=20, confirm_after_hours=12))
    assert (tuning.state, tuning.paused) == ("running", True)
    assert tuning.confirms_at is not None
    left = tuning.confirms_at - database_now()
    assert timedelta(hours=11) < left <= timedelta(hours=12)
    assert {(one.purpose, one.run_id) for one in tuning.trials.filter(result="")} == {("confirm", None)}
    go_on_due()
    assert not Run.objects.filter(state=Run.State.QUEUED).exists()
    Tuning.objects.filter(pk=tuning.pk).update(confirms_at=database_now() - timedelta(seconds=1))
    go_on_due()
    go_on_due()
    assert Run.objects.filter(state=Run.State.QUEUED).count() == 1
    tuning = play(tuning)
    assert (tuning.state, tuning.outcome, tuning.paused) == ("finished", "better", False)


def test_who_lets_a_search_go_on_confirms_at_once_and_a_pause_of_ones_own_has_no_end(
    admin: Member, choice: Choice
) -> None:
    tuning = play(start(admin, choice, space=SMALL_SPACE, budget_runs=20, confirm_after_hours=12))
    resume(admin, tuning)
    assert Run.objects.filter(state=Run.State.QUEUED).count() == 1
    pause(admin, tuning)
    tuning = play(tuning)
    assert (tuning.state, tuning.paused, tuning.confirms_at) == ("running", True, None)
    go_on_due()
    assert not Run.objects.filter(state=Run.State.QUEUED).exists()
    resume(admin, tuning)
    tuning = play(tuning)
    assert (tuning.state, tuning.outcome, tuning.paused) == ("finished", "better", False)


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"further_suts": ["sut-1"]}, "further_suts", "sut-1 has a part in this search already"),
        ({"further_suts": ["sut-2", "sut-2"]}, "further_suts", "sut-2 has a part in this search already"),
        ({"further_suts": ["driver-1"]}, "further_suts", "driver-1 has a part in this search already"),
        ({"further_suts": ["driver-2"]}, "further_suts", "driver-2 may not be used as sut; its role is driver"),
        ({"further_suts": ["theirs"]}, "further_suts", "must belong to your team"),
        ({"further_suts": ["unknown"]}, "further_suts", "Nothing is known of unknown yet: test its connection first"),
        ({"further_suts": ["new"]}, "further_suts", "The host key of new is not approved yet"),
        ({"further_suts": ["alias"]}, "further_suts", "alias leads to the same place as sut-1"),
        ({"further_suts": ["bigger"]}, "further_suts", "bigger is not equal to sut-1 (cpu.count: 8 and 16; memory."),
        ({"further_suts": ["sut-2"], "confirm_sut": "sut-2"}, "confirm_sut", "sut-2 has a part in this search already"),
        ({"confirm_sut": "bigger"}, "confirm_sut", "bigger is not equal to sut-1"),
        ({"confirm_after_hours": 0}, "confirm_after_hours", "at most 336 hours"),
        ({"confirm_after_hours": 400}, "confirm_after_hours", "at most 336 hours"),
    ],
)
def test_servers_that_cannot_be_compared_are_refused_by_field_before_anything_is_stored(
    admin: Member, choice: Choice, others: list[Host], change: dict[str, Any], field: str, said: str
) -> None:
    known(ready_host(admin, "driver-2", roles="driver"))
    ready_host(admin, "unknown", roles="sut")
    known(ready_host(admin, "new", roles="sut"))
    Host.objects.filter(name="new").update(host_key="")
    known(ready_host(admin, "bigger"), {**FACTS, "cpu.count": "16", "memory.total_bytes": "9"}, "b" * 64)
    Host.objects.filter(pk=choice.sut.pk).update(place="10.0.0.1:22")
    choice.sut.refresh_from_db()
    known(ready_host(admin, "alias", roles="sut", place="10.0.0.1:22"))
    theirs = Team.objects.create(slug="theirs", name="Theirs")
    known(Host.objects.create(team=theirs, name="theirs", address="127.0.0.1", user="bench", host_key="key"))
    by_name = {host.name: host for host in Host.objects.all()}
    given = dict(change)
    if "further_suts" in given:
        given["further_suts"] = [by_name[name] for name in given["further_suts"]]
    if "confirm_sut" in given:
        given["confirm_sut"] = by_name[given["confirm_sut"]]
    with pytest.raises(RequestError) as error:
        start(admin, choice, **given)
    assert error.value.field == field
    assert said in error.value.message
    assert not Tuning.objects.exists()
    assert not Run.objects.exists()


def test_a_little_memory_more_makes_no_other_server(admin: Member, choice: Choice, others: list[Host]) -> None:
    known(others[0], {**FACTS, "memory.total_bytes": "67000004096"}, "c" * 64)
    assert len(start(admin, choice, further_suts=others).suts) == 3


def test_a_round_of_which_the_search_changed_meanwhile_is_not_stored(
    admin: Member, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = start(admin, choice)
    real = rounds.work_out

    def meanwhile(question: Question) -> Worked:
        if not Tuning.objects.get(pk=tuning.pk).space["forbidden"]:
            leave_out(admin, tuning, "mode = fast")
        return real(question)

    monkeypatch.setattr(rounds, "work_out", meanwhile)
    finish_next(whole_run(report(1000.0)))
    assert tuning.trials.count() == 1
    TUNINGS.work_out(tuning.pk)
    assert {one.config["mode"] for one in tuning.trials.all()} == {"plain"}
    assert tuning.trials.count() == 8


def test_a_round_that_two_work_out_is_stored_and_launched_once(
    admin: Member, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = start(admin, choice)
    real = rounds.work_out

    def both(question: Question) -> Worked:
        monkeypatch.setattr(rounds, "work_out", real)
        TUNINGS.work_out(tuning.pk)
        return real(question)

    monkeypatch.setattr(rounds, "work_out", both)
    finish_next(whole_run(report(1000.0)))
    assert (tuning.trials.count(), Run.objects.count()) == (8, 2)


def test_a_round_that_cannot_be_worked_out_stops_the_search_and_says_so(
    admin: Member, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(question: Question) -> Worked:
        raise ZeroDivisionError

    monkeypatch.setattr(rounds, "work_out", broken)
    tuning = play(start(admin, choice))
    assert tuning.state == "stopped"
    assert tuning.sentence.startswith("BenchHub failed to go on after 1 trials.")


@pytest.mark.django_db(transaction=True)
def test_rounds_are_worked_out_in_no_transaction_and_one_that_nobody_did_is_made_up_for(
    admin: Member, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = []
    real = rounds.work_out

    def seen(question: Question) -> Worked:
        inside.append(connection.in_atomic_block)
        return real(question)

    monkeypatch.setattr(rounds, "work_out", seen)
    tuning = play(start(admin, choice, space=SMALL_SPACE, budget_runs=30), most=9)
    assert inside == [False, False, False]
    assert tuning.trials.filter(result="ok").count() == 9
    with monkeypatch.context() as dead:
        dead.setattr(TUNINGS, "work_out_later", lambda inquiry: None)
        dead.setattr(TUNINGS, "work_out", lambda tuning_id: None)
        finish_next(whole_run(report(1000.0)))
    assert not Run.objects.filter(state=Run.State.QUEUED).exists()
    go_on_due()
    assert not Run.objects.filter(state=Run.State.QUEUED).exists(), "whoever ended the trial may be at it"
    go_on_due(after_s=0)
    assert Run.objects.filter(state=Run.State.QUEUED).count() == 1
