"""When beat sends what: by the time that passes, whatever the clock says, and never more than anybody takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pytest
import redis
from django.conf import settings

from benchhub import ticking
from benchhub.beat import INTERVALS_S
from benchhub.celery import app
from benchhub.ticking import Ticker
from experiments.keeping.operating import broker
from experiments.models import Canary

pytestmark = pytest.mark.django_db(transaction=True)  # beat gives its connection back

QUEUES = ("runs", "default")
MOST_WAITING = 20  # instead of hundreds, which take a minute


class Moment:
    """Stands in for the module `time` of the ticker: its monotonic clock is set by hand."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    """The real broker, both queues empty, looked at anew each time."""

    def looked(names: Collection[str]) -> broker.Broker:
        return broker.Broker(answers=True, messages=broker.count_messages(names))

    monkeypatch.setattr(ticking, "look_at_broker", looked)
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.delete(*QUEUES)
        yield client
        client.delete(*QUEUES)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Moment:
    moment = Moment()
    monkeypatch.setattr(ticking, "time", moment)
    return moment


def sent(queues: redis.Redis) -> int:
    return sum(int(queues.llen(name)) for name in QUEUES)


def test_every_tick_is_sent_at_the_start_and_again_when_its_seconds_have_passed(
    queues: redis.Redis, moment: Moment
) -> None:
    ticker = Ticker(app)

    assert ticker.tick() == min(INTERVALS_S.values())
    assert sent(queues) == len(INTERVALS_S) + len(QUEUES)
    assert ticker.tick() > 0
    assert sent(queues) == len(INTERVALS_S) + len(QUEUES)

    moment.now_s += min(INTERVALS_S.values())
    ticker.tick()

    assert sent(queues) == len(INTERVALS_S) + len(QUEUES) + 1


def test_a_beat_that_stood_still_sends_each_tick_once(queues: redis.Redis, moment: Moment) -> None:
    ticker = Ticker(app)
    ticker.tick()
    queues.delete(*QUEUES)

    moment.now_s += 86400
    ticker.tick()

    assert sent(queues) == len(INTERVALS_S) + len(QUEUES)


def test_no_message_of_beat_ever_expires() -> None:
    """Whoever takes it would judge that by his own clock."""
    assert all("expires" not in entry["options"] for entry in settings.CELERY_BEAT_SCHEDULE.values())


def test_messages_that_nobody_takes_do_not_pile_up_and_beat_still_says_that_it_is_there(
    queues: redis.Redis, moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticking, "MOST_WAITING", MOST_WAITING)
    ticker = Ticker(app)
    ticks = 0
    while min(int(queues.llen(name)) for name in QUEUES) < MOST_WAITING and ticks < MOST_WAITING:
        ticker.tick()
        moment.now_s += max(INTERVALS_S.values())  # each of them is due again
        ticks += 1
    for _ in range(10):
        ticker.tick()
        moment.now_s += max(INTERVALS_S.values())

    assert [int(queues.llen(name)) for name in QUEUES] == [MOST_WAITING, MOST_WAITING]
    before = Canary.objects.get(queue="runs").sent_at
    ticker.tick()

    assert Canary.objects.get(queue="runs").sent_at > before
