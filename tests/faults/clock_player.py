"""Plays runs while clocks are set: `python -m tests.faults.clock_player FOLDER`, as `services_player` does.

The database and Redis, beat, and each worker have a clock of their own, which goes on from the machine's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import bench.django_project  # noqa: F401 - sets Django up, which the imports after it need
from experiments.models import Run
from tests.clocks import Clocks
from tests.faults.services_player import LEASE_S, Scene, main
from tests.faults.stage import has_event

HOUR_S, DAY_S = 3600.0, 86400.0
STEPS = {"an hour back": -HOUR_S, "an hour forward": HOUR_S, "a day back": -DAY_S, "a day forward": DAY_S}
SKEWS_S = (1.0, 10.0, 60.0)
WORKERS = ("one", "two")
EVERYWHERE = ("database", "beat", *WORKERS)
SOON_S = 60.0
"""Within which a dead worker's run is adopted here: lease, look and two ticks of beat are less than 15 s."""


class Play:
    """A scene with a real beat and two workers, each by its own clock."""

    def __init__(self, scene: Scene, clocks: Clocks) -> None:
        self.scene = scene
        self.stage = scene.stage
        self.clocks = clocks

    def start(self) -> None:
        self.start_beat()
        for name in WORKERS:
            self.start_worker(name)

    def start_beat(self) -> None:
        self.stage.start_beat(preload=self.clocks.environment("beat"))

    def start_worker(self, name: str) -> None:
        self.stage.start_worker(name, lease_s=LEASE_S, preload=self.clocks.environment(name))

    def set(self, names: tuple[str, ...], offset_s: float) -> None:
        for name in names:
            self.clocks.set(name, offset_s)

    def under_way(self) -> Run:
        """A run whose load does not end before `release`."""
        self.scene.pair[1].hold()
        run = self.stage.launch(*self.scene.pair, warm_up_s=0)
        self.stage.until(has_event(run, "load_started", measured=True), nudge=False)
        return run

    def release(self) -> None:
        self.scene.pair[1].release()

    def kill_holder(self, run: Run) -> None:
        """Kill the worker that holds it, and see the other one take it up soon."""
        dead = self.stage.worker_of(run)
        self.stage.kill_worker(dead)
        self.stage.until(lambda: self.stage.worker_of(run) not in ("", dead), nudge=False, seconds=SOON_S)

    def beats(self, run: Run, times: int) -> None:
        """Wait until the run's holder has shown so many times that it lives."""
        seen: set[object] = set()

        def counted() -> bool:
            seen.add(Run.objects.values_list("lease_until", flat=True).get(pk=run.pk))
            return len(seen) > times

        self.stage.until(counted, nudge=False)


def stepped(names: tuple[str, ...], offset_s: float) -> Callable[[Play], None]:
    """The clocks are set under a run: its worker keeps it; it dies, and the other one adopts; a later run starts."""

    def case(play: Play) -> None:
        play.start()
        run = play.under_way()
        play.set(names, offset_s)
        play.beats(run, 8)
        run.refresh_from_db()
        assert run.attempts == 1, f"a worker that lives lost its run ({run.attempts} attempts)"
        play.kill_holder(run)
        play.release()
        play.scene.launch()
        play.scene.assert_all_succeeded(nudge=False, steady=False)
        assert max(Run.objects.values_list("attempts", flat=True)) == 2

    return case


def stepped_after_the_death(offset_s: float) -> Callable[[Play], None]:
    """The clock of everything is set right after a worker died: its lease is as long as any, or shorter."""

    def case(play: Play) -> None:
        play.start()
        run = play.under_way()
        dead = play.stage.worker_of(run)
        play.stage.kill_worker(dead)
        play.set(EVERYWHERE, offset_s)
        play.stage.until(lambda: play.stage.worker_of(run) not in ("", dead), nudge=False, seconds=SOON_S)
        play.release()
        play.scene.assert_all_succeeded(nudge=False, steady=False)

    return case


def beat_starts_again_after_a_step_back(play: Play) -> None:
    """What beat keeps from before must not silence the next one."""
    play.start()
    run = play.under_way()
    play.stage.kill_worker("beat")
    play.set(EVERYWHERE, -DAY_S)
    play.start_beat()
    play.kill_holder(run)
    play.release()
    play.scene.assert_all_succeeded(nudge=False, steady=False)


def skewed(skew_s: float) -> Callable[[Play], None]:
    """Beat is behind, a worker ahead, the other one behind, the database right: each sees others in past and future."""

    def case(play: Play) -> None:
        for name, offset_s in (("beat", -skew_s), ("one", skew_s), ("two", -skew_s)):
            play.clocks.set(name, offset_s)
        play.start()
        run = play.under_way()
        play.kill_holder(run)
        play.release()
        play.scene.launch()
        play.scene.assert_all_succeeded(nudge=False)

    return case


CASES: dict[str, Callable[[Play], None]] = {
    **{f"beat steps {how}": stepped(("beat",), by_s) for how, by_s in STEPS.items()},
    **{f"the workers step {how}": stepped(WORKERS, by_s) for how, by_s in STEPS.items()},
    **{f"the database steps {how}": stepped(("database",), by_s) for how, by_s in STEPS.items()},
    **{f"everything steps {how}": stepped(EVERYWHERE, by_s) for how, by_s in STEPS.items()},
    **{f"a worker dies and everything steps {how}": stepped_after_the_death(by_s) for how, by_s in STEPS.items()},
    "beat starts again after a step back": beat_starts_again_after_a_step_back,
    **{f"clocks differ by {skew_s:g} s": skewed(skew_s) for skew_s in SKEWS_S},
}


def _play(case: Callable[[Play], None], clocks: Clocks) -> Callable[[Scene], None]:
    def played(scene: Scene) -> None:
        play = Play(scene, clocks)
        play.set(EVERYWHERE, 0.0)
        case(play)

    return played


if __name__ == "__main__":
    own = Clocks(Path(os.environ["BENCHHUB_DATA_DIR"]) / "clocks")
    os.environ.update(own.environment("database"))  # of PostgreSQL and Redis, which are started from here
    main(Path(sys.argv[1]), {name: _play(case, own) for name, case in CASES.items()})
