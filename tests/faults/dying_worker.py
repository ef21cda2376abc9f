"""Real Celery workers that kill themselves with SIGKILL at one point of a run, and not one line later.

    python -m tests.faults.dying_worker -Q runs ...

loads everything once, then forks a worker for each line "PHASE POINT NOTE LOG" on its standard input, and prints how
each of them ended (-9 = killed) before it reads the next line. With more words behind LOG it is the worker of a site,
and they are its arguments.

Nothing in the product knows of it: what stores an event and what sends a command to a host are wrapped from outside.
Each phase has an effect on a host or on the connection to it, an event that comes before (`intent`), and one that tells
of it (`proof`). The points: `before_effect`, the intent is stored and the effect not begun; `before_commit`, the effect
is done on the host and its proof not stored; `after_commit`, the proof is stored. The file NOTE appears just before.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agents.events import PHASES, AnyEvent, PhaseName, to_json
from tests.faults.nursery import die_with_the_parent, redirect

Point = Literal["before_effect", "before_commit", "after_commit"]
POINTS: tuple[Point, ...] = ("before_effect", "before_commit", "after_commit")
Effect = Literal["connect", "run", "mutate"]


@dataclass(frozen=True)
class Moment:
    """When a phase does its work: between `intent` and `proof`, each (kind, fields of the event)."""

    effect: Effect
    intent: tuple[str, Mapping[str, Any]]
    proof: tuple[str, Mapping[str, Any]]


def _begun(phase: PhaseName) -> tuple[str, Mapping[str, Any]]:
    return "phase_started", {"phase": phase}


def _done(phase: PhaseName) -> tuple[str, Mapping[str, Any]]:
    return "phase_finished", {"phase": phase}


def _intended(job: str) -> tuple[str, Mapping[str, Any]]:
    return "job_intended", {"name": job}


def _started(job: str) -> tuple[str, Mapping[str, Any]]:
    return "job_started", {"name": job}


MOMENTS: dict[PhaseName, Moment] = {
    "connect": Moment("connect", _begun("connect"), _done("connect")),
    "facts": Moment("run", _begun("facts"), ("facts_collected", {"role": "sut"})),
    "snapshot": Moment("run", _begun("snapshot"), ("snapshot_taken", {"moment": "before"})),
    "tune": Moment("mutate", ("step_intended", {"index": 1}), ("step_applied", {"index": 1})),
    "start": Moment("mutate", _intended("server"), _started("server")),
    "warm_up": Moment("mutate", _intended("load-0"), _started("load-0")),
    "measure": Moment("mutate", _intended("load-1"), _started("load-1")),
    "collect": Moment("run", _begun("collect"), _done("collect")),
    "stop": Moment("mutate", _begun("stop"), _done("stop")),
    "restore": Moment("mutate", _begun("restore"), ("step_reverted", {"index": 1})),
    "verify": Moment("run", _begun("verify"), ("snapshot_taken", {"moment": "after"})),
}
assert tuple(MOMENTS) == PHASES


@dataclass
class Death:
    """Follows one run to its point. `before` and `after` each effect and each event, the worker may die."""

    moment: Moment
    point: Point
    note: Path
    _intent_stored: bool = field(default=False, init=False)
    _effect_done: bool = field(default=False, init=False)

    def before_effect(self, effect: Effect) -> None:
        if self.point == "before_effect" and self._intent_stored and effect == self.moment.effect:
            self._die()

    def after_effect(self, effect: Effect) -> None:
        self._effect_done = self._effect_done or (self._intent_stored and effect == self.moment.effect)

    def before_store(self, event: AnyEvent) -> None:
        if self.point == "before_commit" and self._effect_done and _is(event, self.moment.proof):
            self._die()

    def after_store(self, event: AnyEvent) -> None:
        if _is(event, self.moment.intent):
            self._intent_stored = True
        elif self.point == "after_commit" and self._effect_done and _is(event, self.moment.proof):
            self._die()

    def _die(self) -> None:
        self.note.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _is(event: AnyEvent, wanted: tuple[str, Mapping[str, Any]]) -> bool:
    kind, fields = wanted
    return event.kind == kind and to_json(event) | dict(fields) == to_json(event)


def _wrap(death: Death) -> None:
    from agents.remote.fencing import FencedSession
    from agents.remote.link import Link
    from agents.site.store import HttpStore
    from experiments.running.executing.recorder import Recorder

    store, tell = Recorder.store, HttpStore.store

    def stored(recorder: Recorder, event: AnyEvent) -> None:
        death.before_store(event)
        store(recorder, event)
        death.after_store(event)

    async def told(store: HttpStore, event: AnyEvent) -> None:
        death.before_store(event)
        await tell(store, event)
        death.after_store(event)

    def acting(effect: Effect, action: Callable[..., Any]) -> Callable[..., Any]:
        async def acted(*arguments: Any, **options: Any) -> Any:
            death.before_effect(effect)
            result = await action(*arguments, **options)
            death.after_effect(effect)
            return result

        return acted

    Recorder.store = stored  # type: ignore[assignment, method-assign]
    HttpStore.store = told  # type: ignore[assignment, method-assign]
    FencedSession.mutate = acting("mutate", FencedSession.mutate)  # type: ignore[method-assign]
    Link.run = acting("run", Link.run)  # type: ignore[method-assign]
    Link.open = acting("connect", Link.open)  # type: ignore[method-assign]


def main(arguments: list[str]) -> None:
    from agents.site.worker import main as work_for_a_site
    from benchhub.celery import app

    app.loader.import_default_modules()  # sets Django up, which the wrapped modules need
    die_with_the_parent()
    for line in sys.stdin:
        phase, point, note, log, *of_site = line.split()
        worker = os.fork()
        if worker == 0:
            die_with_the_parent()
            redirect(Path(log))
            _wrap(Death(MOMENTS[phase], point, Path(note)))  # type: ignore[index, arg-type]
            if of_site:
                work_for_a_site(of_site)
            else:
                app.worker_main(["worker", *arguments])
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
