"""What happened, told to whoever goes on from there: a lower floor tells, the table in `experiments.apps` says whom.

A follower works in the transaction of what happened, so a worker that dies leaves nothing half done. It has a savepoint
of its own: one that fails is logged, and undoes neither what happened nor what another follower did.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.module_loading import import_string

from experiments.registry.errors import DATABASE_AWAY

if TYPE_CHECKING:  # the table names these events before there are models
    from experiments.models import Alert, Experiment, Occasion, Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunEnded:
    """The run is finished, whatever its outcome, and its hosts are free.

    `worker` is who executed it last, "" of one that never started. Not told of what waited in an experiment that was
    cancelled: those end together, with it.
    """

    run: Run
    worker: str = ""


@dataclass(frozen=True)
class BlocksEnded:
    """No run of the experiment is open, its verdicts are stored: its stop rule says what follows. Its row is locked.

    Told again by the next tick while nothing has followed.
    """

    experiment: Experiment


@dataclass(frozen=True)
class ExperimentEnded:
    """The experiment is finished or cancelled, its verdicts are final. Its row is locked."""

    experiment: Experiment


@dataclass(frozen=True)
class HostQuarantined:
    """The run could not be proven undone on the host, so nothing starts there."""

    run: Run
    host_id: int
    reason: str


@dataclass(frozen=True)
class AlertConfirmed:
    """There is no doubt any more that the trend changed, or that its data are missing."""

    alert: Alert


@dataclass(frozen=True)
class OccasionMissed:
    """A time of a schedule that launched nothing."""

    occasion: Occasion


@dataclass(frozen=True)
class ResultsStored:
    """What others measured became finished runs of a team, stored together."""

    team_id: int
    runs: Sequence[Run]


Event = RunEnded | BlocksEnded | ExperimentEnded | HostQuarantined | AlertConfirmed | OccasionMissed | ResultsStored
Followers = Mapping[type[Event], tuple[str, ...]]
"""Event -> the dotted paths of its followers, in the order in which they are told."""

_followers: dict[type[Event], tuple[str, ...]] = {}
_resolved: dict[str, Callable[[Event], None]] = {}


def install(followers: Followers) -> None:
    """Tell these from now on. Each is imported when it is told something for the first time."""
    _followers.clear()
    _followers.update(followers)


def tell(event: Event) -> None:
    """Call the event's followers. Call in the transaction that makes the event true."""
    for path in _followers.get(type(event), ()):
        try:
            with transaction.atomic():
                _follower(path)(event)
        except DATABASE_AWAY:
            raise
        except Exception:
            logger.exception("%s: %s failed", event, path)


def _follower(path: str) -> Callable[[Event], None]:
    if path not in _resolved:
        _resolved[path] = import_string(path)
    return _resolved[path]
