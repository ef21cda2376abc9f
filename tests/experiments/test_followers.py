"""Who goes on when something happened: the table of followers, and what a follower that fails leaves standing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import get_args, get_type_hints

import pytest
from django.utils.module_loading import import_string

from experiments.apps import FOLLOWERS
from experiments.models import Host, Run, Team
from experiments.registry import events
from experiments.registry.errors import DATABASE_AWAY

EXPECTED = {
    events.RunEnded: ["retries", "events", "rule_messages", "live", "live", "live", "tracing", "reading"],
    events.BlocksEnded: ["stopping"],
    events.ExperimentEnded: ["events", "rule_messages", "live"],
    events.HostQuarantined: ["events"],
    events.AlertConfirmed: ["alert_mails"],
    events.ResultsStored: ["rule_messages"],
    events.OccasionMissed: ["events"],
}
TOLD: list[events.Event] = []


def test_every_event_has_the_followers_that_are_expected() -> None:
    assert set(FOLLOWERS) == set(get_args(events.Event)) == set(EXPECTED)
    assert {event: [path.split(".")[-2] for path in paths] for event, paths in FOLLOWERS.items()} == EXPECTED


@pytest.mark.parametrize(("event", "path"), [(event, path) for event, paths in FOLLOWERS.items() for path in paths])
def test_each_follower_takes_its_event(event: type[events.Event], path: str) -> None:
    taken = get_type_hints(import_string(path))
    assert taken.pop("return") is type(None)
    assert list(taken.values()) == [event]


def takes_note(event: events.Event) -> None:
    TOLD.append(event)


def changes_something_and_fails(event: events.Event) -> None:
    Team.objects.update(name="changed")
    raise ValueError("a mistake")


def loses_the_database(event: events.Event) -> None:
    raise DATABASE_AWAY[0]("the connection is gone")


@pytest.fixture
def run(team: Team) -> Iterator[Run]:
    yield Run(team=team, number=1)
    TOLD.clear()
    events.install(FOLLOWERS)


def test_one_that_fails_undoes_itself_alone_and_is_logged(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    events.install({events.RunEnded: (f"{__name__}.changes_something_and_fails", f"{__name__}.takes_note")})
    with caplog.at_level(logging.ERROR):
        events.tell(events.RunEnded(run))
    assert [type(event) for event in TOLD] == [events.RunEnded]
    assert Team.objects.get().name == "Performance"
    assert "changes_something_and_fails failed" in caplog.text


def test_a_database_that_is_away_goes_to_whoever_told(run: Run) -> None:
    events.install({events.RunEnded: (f"{__name__}.loses_the_database",)})
    with pytest.raises(DATABASE_AWAY):
        events.tell(events.RunEnded(run))
    assert not Host.objects.exists()
