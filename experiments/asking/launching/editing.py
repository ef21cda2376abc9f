"""Changing an experiment that is stored: what it is called at any time, how it is judged before its first run only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from experiments.asking.launching.creating import check_margin, check_repetitions
from experiments.models import Experiment, Member, Role
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.experiments.rules import rules_of
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.naming import check_experiment_name
from experiments.registry.notes.labels import check_labels
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

MAX_QUESTION = 400
_ALWAYS = ("name", "question")


@dataclass(frozen=True)
class Edit:
    """New values of an experiment; None leaves one as it is."""

    name: str | None = None
    question: str | None = None
    labels: Mapping[str, str] | None = None
    repetitions: int | None = None
    order: str | None = None
    primary_metric: str | None = None
    margin_ratio: float | None = None
    gate_metrics: Sequence[str] | None = None

    def given(self) -> dict[str, Any]:
        """What is to change, by field."""
        return {name: value for name, value in vars(self).items() if value is not None}


def edit_experiment(member: Member, experiment: Experiment, edit: Edit) -> None:
    """Give an experiment other values. Launchers may.

    Conflict for anything but its name and question once it was launched: what decides is chosen before the first run.
    RequestError names the field that does not fit.
    """
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        locked: Experiment = Experiment.objects.select_for_update(of=("self",)).get(pk=experiment.pk)
        changed = {name: value for name, value in edit.given().items() if getattr(locked, name) != value}
        if not changed:
            return
        late = [name for name in changed if name not in _ALWAYS]
        if late and locked.state != Experiment.State.DRAFT:
            raise Conflict(
                f"This experiment is {locked.get_state_display()}: {late[0]} is chosen before the first run. "
                "Launch a copy with another one.",
                field=late[0],
            )
        _check(member, locked, changed)
        before = {name: getattr(locked, name) for name in changed}
        for name, value in changed.items():
            setattr(locked, name, value)
        locked.save(update_fields=list(changed))
        audit.record(member, "experiment.change", f"experiment {locked.name}", before=before, after=changed)
    experiment.refresh_from_db()


def _check(member: Member, experiment: Experiment, changed: Mapping[str, Any]) -> None:
    if "name" in changed:
        check_experiment_name(changed["name"])
    question = changed.get("question", "")
    if len(question) > MAX_QUESTION or "\0" in question:
        raise RequestError(f"A question has at most {MAX_QUESTION} characters.", field="question")
    if "labels" in changed:
        check_labels(changed["labels"])
    if "primary_metric" in changed:
        metric_named(member.team_id, changed["primary_metric"], field="primary_metric")
    if "margin_ratio" in changed:
        check_margin(changed["margin_ratio"])
    rules = replace(rules_of(experiment), gate_metrics=tuple(changed.get("gate_metrics", experiment.gate_metrics)))
    rules.check(member.team_id, order=changed.get("order", experiment.order), variants=experiment.variants.count())
    if "repetitions" in changed:
        check_repetitions(changed["repetitions"])
        if rules.first_blocks(changed["repetitions"]) != changed["repetitions"]:
            raise RequestError(f"The stop rule {rules.stop_rule} sets the repetitions itself.", field="repetitions")
