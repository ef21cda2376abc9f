"""Holding what something is about to refer to, so that nobody deletes it in the same moment."""

from __future__ import annotations

from experiments.models import Experiment, Run


def hold(subject: Run | Experiment) -> bool:
    """Lock its row until the transaction ends: whoever deletes it waits. False when it is gone or in the trash.

    Call it before the team's row is locked: deleting locks in this order, too.
    """
    rows = type(subject)._base_manager.select_for_update(of=("self",), no_key=True)
    return rows.filter(pk=subject.pk, trashed_at=None).only("pk").first() is not None
