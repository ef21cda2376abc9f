"""Faults under the workers of a site, which fetch their runs over HTTPS: the most telling ones of the others' list.

The whole list runs on such workers with BENCHHUB_TEST_WORKERS=pull (docs/reliability.md).
"""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from experiments.asking.launching.dryrun import request
from experiments.models import Run, RunEvent
from tests.faults.centre import Centre
from tests.faults.stage import Actor, Stage, state_is
from tests.faults.test_workers import LEASE_S, assert_succeeded, cancel, loaded

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.slow]


@pytest.fixture
def pulls() -> bool:
    return True


def samples(run: Run) -> int:
    return RunEvent.objects.filter(run=run, kind="samples").count()


def have_their_times(run: Run) -> bool:
    """Whether the events of readings are stored with the times at which these were read."""
    rows = RunEvent.objects.filter(run=run, kind="samples")
    return all(abs(row.at.timestamp() - row.payload["at_unix_s"]) < 0.5 for row in rows)


def cut_with_readings_on_their_way(stage: Stage, centre: Centre, run: Run) -> int:
    """Cut the link under the load until a few readings wait at the site; how many had arrived before."""
    stage.until(lambda: loaded(run)() and samples(run) > 0)
    centre.link.cut()
    before = samples(run)
    spool = centre.folder / "state-one"
    stage.until(lambda: sum(path.read_bytes().count(b'"samples"') for path in spool.glob("*.jsonl")) > before + 4)
    return before


def test_a_run_of_a_site_succeeds_without_a_key_in_the_database(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    stage.start_worker("one", lease_s=60)
    run = stage.launch(*pair)
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert run.attempts == 1
    assert [bytes(actor.row.private_key) for actor in pair] == [b"", b""]
    assert stage.broken() == []


def test_a_dry_run_of_a_site_shows_what_its_hosts_say(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    stage.start_worker("one", lease_s=60)
    asked = request(stage.member, stage.choice(*pair))

    def answered() -> bool:
        asked.refresh_from_db()
        return asked.state != "pending"

    stage.until(answered)
    assert (asked.state, asked.message) == ("ready", "")
    assert asked.plan is not None
    commands = [command for phase in asked.plan["phases"] for item in phase["items"] for command in item["commands"]]
    assert any("etc/app.conf" in command for command in commands)
    assert stage.broken() == []


def test_the_load_goes_on_while_the_link_is_cut_and_its_readings_are_told_later(
    stage: Stage, pair: tuple[Actor, Actor]
) -> None:
    centre = stage.centre
    assert centre is not None
    stage.start_worker("one", lease_s=LEASE_S)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    before = cut_with_readings_on_their_way(stage, centre, run)
    stage.until(lambda: "the centre is away" in (stage.folder / "one.log").read_text())
    assert samples(run) <= before + 1  # one may have been on its way
    centre.link.heal()
    stage.until(lambda: samples(run) > before + 4)
    assert have_their_times(run)
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert run.attempts == 1  # nobody else was there to take it up, and its own worker still had it
    assert stage.broken() == []


def test_a_worker_with_idle_slots_keeps_its_run_and_the_readings_of_a_cut_that_outlives_the_lease(
    stage: Stage, pair: tuple[Actor, Actor]
) -> None:
    centre = stage.centre
    assert centre is not None
    stage.start_worker("one", lease_s=60, heartbeat_s=20, concurrency=4)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    before = cut_with_readings_on_their_way(stage, centre, run)
    long_ago = Now() - timedelta(minutes=2)  # in place of the minutes that its lease and the doubt still have
    Run.objects.filter(pk=run.pk).update(lease_until=long_ago, doubted_at=long_ago)
    centre.link.heal()
    stage.until(lambda: samples(run) > before + 4)
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert run.attempts == 1
    assert stage.broken() == []


def test_a_proxy_that_answers_for_the_centre_while_that_is_deployed_anew_ends_no_run(
    stage: Stage, pair: tuple[Actor, Actor]
) -> None:
    centre = stage.centre
    assert centre is not None
    stage.start_worker("one", lease_s=60)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(loaded(run))
    centre.link.answer_instead("404 Not Found", "default backend - 404")
    log = stage.folder / "one.log"
    stage.until(lambda: "no heartbeat" in log.read_text() and "the centre is away" in log.read_text())
    pair[1].release()
    centre.link.heal()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert run.attempts == 1
    assert stage.broken() == []


@pytest.mark.parametrize("again", ("one", "two"), ids=("the same machine", "another one"))
def test_a_worker_that_is_killed_under_the_load_is_followed_by_another(
    again: str, stage: Stage, pair: tuple[Actor, Actor]
) -> None:
    stage.start_worker("one", lease_s=LEASE_S)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(loaded(run))
    stage.kill_worker("one")
    stage.start_worker(again, lease_s=LEASE_S)
    stage.until(lambda: Run.objects.get(pk=run.pk).attempts > 1)
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert stage.broken() == []


def test_what_a_killed_worker_could_not_tell_is_told_by_the_next_one(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    centre = stage.centre
    assert centre is not None
    stage.start_worker("one", lease_s=60)  # so that nobody takes the run up before its events are told
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    before = cut_with_readings_on_their_way(stage, centre, run)
    stage.kill_worker("one")
    centre.link.heal()
    stage.start_worker("one", lease_s=60)
    stage.until(lambda: samples(run) > before + 4)
    assert have_their_times(run)
    Run.objects.filter(pk=run.pk).update(owner="")  # in place of the minute that its lease still has
    stage.until(lambda: Run.objects.get(pk=run.pk).attempts > 1)
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert stage.broken() == []


def test_the_web_server_is_killed_and_comes_back(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    stage.start_worker("one", lease_s=60)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(loaded(run))
    assert stage.centre is not None
    stage.centre.restart()
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert stage.broken() == []


def test_a_worker_that_slept_past_its_lease_touches_nothing(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    for name in ("one", "two"):
        stage.start_worker(name, lease_s=LEASE_S)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(loaded(run))
    asleep = stage.worker_of(run)
    stage.kill_worker(asleep, signal.SIGSTOP)
    stage.until(lambda: stage.worker_of(run) not in ("", asleep))
    stage.kill_worker(asleep, signal.SIGCONT)
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert stage.broken() == []


def test_a_worker_that_is_told_to_stop_hands_its_run_over(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    stage.start_worker("old", lease_s=3600)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(loaded(run))
    stage.kill_worker("old", signal.SIGTERM)
    assert stage.workers["old"].wait() == 0
    stage.start_worker("new", lease_s=3600)
    stage.until(lambda: stage.worker_of(run) == "new")
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert stage.broken() == []


def test_a_cancelled_run_of_a_site_is_undone(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    stage.start_worker("one", lease_s=60)
    run = stage.launch(*pair, warm_up_s=0, measure_s=3600)
    stage.until(state_is(run, "measuring"))
    cancel(stage, run)
    stage.until(stage.all_finished)
    run.refresh_from_db()
    assert (run.outcome, run.restore) == ("cancelled", "verified")
    assert stage.broken() == []


def test_four_workers_that_ask_at_once_claim_one_run_once(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    for name in ("one", "two", "three", "four"):
        stage.start_worker(name, lease_s=3600)
    run = stage.launch(*pair)
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert run.attempts == 1
    assert stage.broken() == []
