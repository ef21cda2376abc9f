"""Plays tuning searches whose worker, broker or host fails: `python -m tests.faults.tuning_player FOLDER`.

As `services_player`: names of cases come in, one line of JSON for each goes out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import bench.django_project  # noqa: F401 - sets Django up, which the imports after it need
from experiments.analysis.tuning.search import Round, decide
from experiments.asking.tunings.live import start_tuning
from experiments.asking.tunings.plan import TuningPlan
from experiments.asking.tunings.reading import cost_of, trials_of
from experiments.asking.tunings.steering import pause, resume
from experiments.asking.tunings.trials import settings_of
from experiments.models import Recipe, Run, Tuning
from experiments.registry.documents.versions import save_version
from tests.faults.services_player import Scene, main
from tests.faults.stage import state_is
from tests.sshd import SshdHost, cut_connections

BUDGET_RUNS = 20
SPACE = {"parameters": [{"name": "size", "low": 1, "high": 1000}, {"name": "for_nothing"}]}


def search(scene: Scene) -> Tuning:
    """A search over two parameters that the server does not know, its first trial in the queue."""
    choice = scene.stage.choice(*scene.pair, measure_s=2)
    body = choice.recipe.body
    body["steps"].append({"kind": "environment", "variables": {"SIZE": "${size}", "NOTHING": "${for_nothing}"}})
    body["parameters"] |= {
        "size": {"type": "int", "default": 10},
        "for_nothing": {"type": "bool", "default": False},
    }
    choice = replace(choice, recipe=save_version(scene.stage.member, Recipe, choice.recipe.name, body))
    plan = TuningPlan("Faster?", choice, SPACE, budget_runs=BUDGET_RUNS, seed=1)
    return start_tuning(scene.stage.member, plan)


def through(fault: Callable[[Scene, Run], None]) -> Callable[[Scene], None]:
    """The trials after the fault are those that would have followed, each is run once, and each is counted."""

    def case(scene: Scene) -> None:
        scene.start_workers()
        tuning = search(scene)
        first = Run.objects.get()
        scene.until_measuring(first)
        fault(scene, first)
        go_on_until(scene, tuning, 2)
        resume(scene.stage.member, tuning)
        go_on_until(scene, tuning, 4)

    return case


def go_on_until(scene: Scene, tuning: Tuning, finished: int) -> None:
    """So many trials at least, and no further one under way."""
    scene.stage.until(lambda: Run.objects.filter(state=Run.State.FINISHED).count() >= finished)
    pause(scene.stage.member, tuning)
    scene.stage.until(scene.stage.all_finished)
    assert_as_planned(scene, tuning)


def assert_as_planned(scene: Scene, tuning: Tuning) -> None:
    """Whatever was launched is what the search plans without any fault, in order, and nothing was launched twice."""
    planned = decide(settings_of(tuning, []), [])
    assert isinstance(planned, Round)
    launched = list(tuning.trials.exclude(run=None).values_list("position", "config", "run_id"))
    assert [config for _, config, _ in launched] == [dict(one.config) for one in planned.planned[: len(launched)]]
    assert [position for position, _, _ in launched] == list(range(len(launched)))
    assert [pk for _, _, pk in launched] == list(Run.objects.order_by("pk").values_list("pk", flat=True))
    told = list(Run.objects.values_list("outcome", "failure", "restore"))
    assert set(told) == {("succeeded", "", "verified")}, told
    cost = cost_of(tuning, trials_of(tuning))
    assert (cost.runs, cost.left_runs) == (len(launched), BUDGET_RUNS - len(launched))
    # Every trial has the token of the one before it, so each looks as if it were applied again.
    assert [one for one in scene.stage.broken() if "was applied again" not in one] == []


def worker_dies(scene: Scene, first: Run) -> None:
    scene.stage.kill_worker(scene.stage.worker_of(first))


def redis_is_lost(scene: Scene, first: Run) -> None:
    """It is killed with all that it holds, and is back only when the next trial has been decided."""
    with scene.without_redis():
        scene.stage.until(state_is(first, "finished"))
        scene.stage.until(lambda: Run.objects.count() == 2)


def host_is_cut_off(scene: Scene, first: Run) -> None:
    """Every connection to both hosts ends under the load."""
    for actor in scene.pair:
        assert isinstance(actor.host, SshdHost)
        cut_connections(actor.host.pid)


def account_is_closed(scene: Scene) -> None:
    """The run under way ends and is put back, and nothing follows it."""
    scene.start_workers()
    tuning = search(scene)
    first = Run.objects.get()
    scene.until_measuring(first)
    user = scene.stage.member.user
    user.is_active = False
    user.save()
    scene.stage.until(lambda: not Tuning.objects.filter(state="running").exists())
    tuning.refresh_from_db()
    assert (tuning.state, tuning.sentence) == ("stopped", "The account of whoever started it is closed.")
    scene.stage.until(scene.stage.all_finished)
    assert list(Run.objects.values_list("outcome", "restore")) == [("succeeded", "verified")]


CASES: dict[str, Callable[[Scene], None]] = {
    "its worker is killed": through(worker_dies),
    "Redis is lost": through(redis_is_lost),
    "its host is cut off": through(host_is_cut_off),
    "the account of its owner is closed": account_is_closed,
}

if __name__ == "__main__":
    main(Path(sys.argv[1]), CASES)
