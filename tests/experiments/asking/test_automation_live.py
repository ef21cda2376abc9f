"""With nothing left out: real workers that die, a real receiver, and real servers that a commit or a setting slows."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
from django.db import transaction

from experiments.analysis.tuning.search import Round, decide
from experiments.asking.bisections.live import start_bisection
from experiments.asking.bisections.plan import BisectionPlan
from experiments.asking.tunings.live import run_ended as tuning_run_ended
from experiments.asking.tunings.live import start_tuning
from experiments.asking.tunings.plan import TuningPlan
from experiments.asking.tunings.steering import pause, resume
from experiments.asking.tunings.trials import settings_of
from experiments.models import Bisection, Delivery, Host, Recipe, Run
from experiments.registry.documents.versions import save_version
from experiments.registry.events import RunEnded
from experiments.tasks import deliver_due
from experiments.telling.notifying.events import tell
from experiments.telling.notifying.happenings import RUN_FINISHED, Happening
from experiments.telling.notifying.webhooks import Wanted, create_webhook
from tests import needs
from tests.experiments.asking.test_bisections import as_if_run
from tests.experiments.telling.receiver import running_receiver
from tests.faults.conftest import pair, pulls, sshd_hosts, stage
from tests.faults.stage import Actor, Stage, has_event

__all__ = ["pair", "pulls", "sshd_hosts", "stage"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

FAST_RPS, SLOW_RPS = 2 / 0.02, 2 / 0.08
"""What two connections can get of each server below: a request each, one after the other."""

# The last commit answers four times as slowly, whatever this machine adds to both.
SERVER = """import http.server, os, sys, time

DELAY_S = 0.08 if os.environ["COMMIT"] == "c77e012" else 0.02

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        time.sleep(DELAY_S)
        super().do_GET()

    def log_message(self, *arguments):
        pass

http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def test_a_message_is_delivered_although_its_hint_is_lost_and_a_worker_dies_with_it(
    stage: Stage, settings: Any
) -> None:
    settings.BENCHHUB_WEBHOOK_HTTP, settings.BENCHHUB_WEBHOOK_NETWORKS = True, [ip_network("127.0.0.0/8")]
    stage.environment |= {"BENCHHUB_WEBHOOK_HTTP": "true", "BENCHHUB_WEBHOOK_NETWORKS": "127.0.0.0/8"}
    with running_receiver() as receiver:
        receiver.slow = True
        wanted = Wanted("chat", f"http://127.0.0.1:{receiver.port}/", [RUN_FINISHED])
        webhook, _ = create_webhook(stage.member, wanted)
        happening = Happening(RUN_FINISHED, "Run #1 finished", "It finished.", "runs/1/")
        tell(webhook.team_id, happening)  # stored; no worker is there, and its hint is worth nothing soon
        delivery = Delivery.objects.get()

        def asked_for() -> bool:
            deliver_due()  # as beat does
            return bool(receiver.paths)

        stage.start_worker("one")
        stage.until(asked_for)
        stage.kill_worker("one")  # in the middle of the request
        delivery.refresh_from_db()
        assert (delivery.state, delivery.tries, delivery.attempts.count()) == ("waiting", 1, 0)
        receiver.slow = False
        receiver.released.set()
        Delivery.objects.update(next_at=delivery.created_at)  # its lease is over
        stage.start_worker("two")

        def delivered() -> bool:
            deliver_due()
            return Delivery.objects.filter(state="delivered").exists()

        stage.until(delivered)
        assert len(receiver.bodies) == 2
        assert receiver.bodies[0] == receiver.bodies[1]
        assert {headers["X-BenchHub-Delivery"] for headers in receiver.headers} == {str(delivery.public_id)}


@needs.program("wrk")
def test_a_bisection_names_the_commit_that_made_a_real_server_slow_although_a_worker_dies(
    stage: Stage, pair: tuple[Actor, Actor]
) -> None:
    (pair[0].root / "server.py").write_text(SERVER)
    commit = {"kind": "environment", "variables": {"COMMIT": "${token}"}}
    choice = stage.choice(*pair, warm_up_s=0, measure_s=1, steps=(commit,))
    plan = BisectionPlan(
        name="Who slowed it?",
        application=choice.application,
        recipe=choice.recipe,
        workload=choice.workload,
        sut=choice.sut,
        drivers=choice.drivers,
        labels_in_order=["4f2c9d1", "c77e012"],
        parameter="token",
        parameters={"password": stage.password},
    )
    bisection = start_bisection(stage.member, plan)
    pairs = Run.objects.order_by("pk")
    for run in pairs.filter(block__gt=0).select_related("variant"):  # ten real ones would take a minute
        slow = run.variant is not None and run.variant.name == "c77e012"
        as_if_run(run, (SLOW_RPS if slow else FAST_RPS) * (1 - (run.block or 0) / 100))
    for name in ("one", "two"):
        stage.start_worker(name)
    first = pairs[0]
    stage.until(has_event(first, "load_started", measured=True))
    stage.kill_worker(stage.worker_of(first))
    stage.until(lambda: not Bisection.objects.filter(state="running").exists())
    bisection.refresh_from_db()
    step = bisection.steps.get()
    told = (bisection.sentence, stage.told())
    assert (bisection.state, bisection.high, step.result) == ("finished", 1, "bad"), told
    assert bisection.sentence.startswith("c77e012 is the first bad one. Throughput: c77e012 is slower than 4f2c9d1 by")
    assert step.ci95_high_pct is not None
    assert step.ci95_high_pct < 0, told
    assert Run.objects.get(pk=first.pk).attempts > 1
    real = pairs.filter(block=0).values_list("outcome", "restore")
    assert list(real) == [("succeeded", "verified")] * 2
    assert not Host.objects.exclude(state="ready", leased_by=None).exists()


# Each request takes as many milliseconds as it is told to; the other setting is there for nothing.
TUNED_SERVER = SERVER.replace(
    '0.08 if os.environ["COMMIT"] == "c77e012" else 0.02', 'int(os.environ["DELAY_MS"]) / 1000'
)


@needs.program("wrk")
def test_a_tuning_search_goes_on_with_the_same_trial_although_its_worker_dies_and_finds_the_planted_best(
    stage: Stage, pair: tuple[Actor, Actor]
) -> None:
    (pair[0].root / "server.py").write_text(TUNED_SERVER)
    told = {"kind": "environment", "variables": {"DELAY_MS": "${delay_ms}", "FOR_NOTHING": "${for_nothing}"}}
    choice = stage.choice(*pair, warm_up_s=0, measure_s=1)
    body = choice.recipe.body
    body["steps"].append(told)
    body["parameters"] |= {"delay_ms": {"default": 40}, "for_nothing": {"type": "bool", "default": False}}
    choice = replace(choice, recipe=save_version(stage.member, Recipe, choice.recipe.name, body))
    space = {"parameters": [{"name": "delay_ms", "low": 10, "high": 80}, {"name": "for_nothing"}]}
    tuning = start_tuning(stage.member, TuningPlan("Faster?", choice, space, budget_runs=24, seed=1))
    for name in ("one", "two"):
        stage.start_worker(name)
    first = Run.objects.get()
    stage.until(has_event(first, "load_started", measured=True))
    stage.kill_worker(stage.worker_of(first))
    stage.until(lambda: Run.objects.count() == 3)  # two are over, one of them adopted
    pause(stage.member, tuning)
    stage.until(stage.all_finished)
    broken = [one for one in stage.broken() if "was applied again" not in one]  # all trials have one token
    assert (tuning.state, broken) == ("running", [])
    assert Run.objects.get(pk=first.pk).attempts > 1
    assert list(Run.objects.values_list("outcome", "restore")) == [("succeeded", "verified")] * 3, stage.told()
    first_round = decide(settings_of(tuning, []), [])
    assert isinstance(first_round, Round)
    planned = [dict(one.config) for one in first_round.planned]
    launched = tuning.trials.exclude(run=None).order_by("position").values_list("config", flat=True)
    assert list(launched) == planned[:3]
    for worker in stage.workers.values():
        worker.kill()
    resume(stage.member, tuning)
    for place in range(60):  # twenty further real ones would take minutes
        run = Run.objects.exclude(state=Run.State.FINISHED).first()
        if run is None:
            break
        assert run.spec is not None
        delay_s = run.spec["recipe"]["parameters"]["delay_ms"] / 1000
        as_if_run(run, 2 / (delay_s + 0.002) * (1 - place % 3 / 200))
        run.refresh_from_db()
        with transaction.atomic():
            tuning_run_ended(RunEnded(run))
    tuning.refresh_from_db()
    assert (tuning.state, tuning.outcome) == ("finished", "better"), tuning.sentence
    assert tuning.winner is not None
    assert tuning.winner["delay_ms"] <= 20
    positions = list(tuning.trials.exclude(run=None).values_list("position", flat=True))
    assert positions == list(range(len(positions)))
