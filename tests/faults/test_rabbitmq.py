"""RabbitMQ as the broker: a run's message goes through a quorum queue, and a broker that dies loses no run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import amqp  # type: ignore[import-untyped]
import pytest

from experiments.keeping.operating.broker import count_messages, look_at_broker
from experiments.models import Canary, Run
from tests import needs
from tests.faults.stage import Actor, Stage, has_event, spoilt
from tests.rabbitmq import PROGRAM, RabbitMq

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.faults,
    pytest.mark.slow,
    needs.marked(PROGRAM.exists(), "rabbitmq-server", "apt-get install rabbitmq-server"),
]


@pytest.fixture
def pulls() -> bool:
    """Workers here take messages of the broker, which those of a site behind a firewall never see."""
    return False


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMq]:
    node = RabbitMq(tmp_path_factory.mktemp("rabbitmq"))
    try:
        node.start()
        yield node
    finally:
        node.stop()


def test_runs_start_by_messages_of_a_quorum_queue_and_outlive_the_broker(
    stage: Stage, pair: tuple[Actor, Actor], rabbitmq: RabbitMq, settings: Any
) -> None:
    settings.CELERY_BROKER_URL = rabbitmq.url
    stage.environment["BROKER_URL"] = rabbitmq.url
    stage.start_worker("one", lease_s=5)
    stage.start_beat()
    first = stage.launch(*pair, warm_up_s=0)
    stage.until(stage.all_finished, nudge=False)
    assert spoilt(Run.objects.get(pk=first.pk)) == []
    stage.until(lambda: Canary.objects.filter(taken_at__isnull=False).count() == 2, nudge=False)

    found = look_at_broker(["runs", "default", "runs.nowhere"])
    assert found.trouble == ""
    assert set(found.messages) == {"runs", "default", "runs.nowhere"}
    assert kind_of("runs", rabbitmq) == "quorum"

    pair[1].hold()
    second = stage.launch(*pair, warm_up_s=0)
    stage.until(has_event(second, "load_started", measured=True), nudge=False)
    rabbitmq.kill()
    assert not look_at_broker(["runs"]).answers
    pair[1].release()
    third = stage.launch(*pair, warm_up_s=0)
    stage.until(lambda: Run.objects.get(pk=second.pk).outcome == "succeeded", nudge=False)
    rabbitmq.start()
    stage.until(stage.all_finished, nudge=False)
    assert [run.outcome for run in Run.objects.filter(pk__in=[second.pk, third.pk])] == ["succeeded"] * 2
    assert set(count_messages(["runs", "default"])) == {"runs", "default"}
    assert stage.broken() == []


def kind_of(queue: str, node: RabbitMq) -> str:
    """What kind the broker says the queue is, when somebody wants another."""
    with (
        amqp.Connection(f"127.0.0.1:{node.port}", "guest", "guest") as connection,
        pytest.raises(amqp.PreconditionFailed) as refused,
    ):
        connection.channel().queue_declare(
            queue, durable=True, auto_delete=False, arguments={"x-queue-type": "classic"}
        )
    return "quorum" if "'quorum'" in str(refused.value) else str(refused.value)
