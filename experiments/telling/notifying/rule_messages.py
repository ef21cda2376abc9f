"""Who is told that a team's own rule was broken: webhooks that ask, and members who want mails about alerts.

Followers: they work in the transaction that ends a run or an experiment, so what is stored is told once.
"""

from __future__ import annotations

from collections.abc import Iterable

from experiments.judging.alerts.own_rules import Broken, broken_by_runs, broken_by_verdicts
from experiments.models import BrokenRule, Experiment, Run
from experiments.registry.events import ExperimentEnded, ResultsStored, RunEnded
from experiments.telling.notifying import happenings
from experiments.telling.notifying.events import tell
from experiments.telling.notifying.happenings import Happening

MOST_TOLD = 20
"""Of one upload: what breaks rules beyond it is stored and shown, and nobody gets hundreds of mails."""


def run_ended(event: RunEnded) -> None:
    """A run came to its end; one that never started was cancelled and breaks nothing."""
    if event.run.started_at is not None:
        _told(event.run.team_id, broken_by_runs(event.run.team_id, [event.run]))


def results_stored(event: ResultsStored) -> None:
    """What others measured was stored."""
    _told(event.team_id, broken_by_runs(event.team_id, event.runs))


def experiment_ended(event: ExperimentEnded) -> None:
    """All runs of an experiment are over; one that was cancelled has no final verdict."""
    experiment = event.experiment
    if not experiment.is_demo and experiment.state == Experiment.State.FINISHED:
        _told(experiment.team_id, broken_by_verdicts(experiment))


def _told(team_id: int, found: Iterable[Broken]) -> None:
    broken = list(found)
    BrokenRule.objects.bulk_create(
        BrokenRule(rule=one.rule, run=one.run, experiment=one.experiment, sentence=one.sentence) for one in broken
    )
    for one in broken[:MOST_TOLD]:
        tell(team_id, _happening(one), mail_to="mails_alerts")


def _happening(one: Broken) -> Happening:
    data: dict[str, object] = {"rule": one.rule.pk, "name": one.rule.name, "kind": one.rule.kind}
    run: Run | None = one.run
    if run is not None:
        value = run.metrics.get(one.rule.metric) if one.rule.metric else None
        data |= {"run": run.number, "labels": run.labels, "metric": one.rule.metric or None, "value": value}
        path = f"runs/{run.number}/"
    else:
        data["experiment"] = one.experiment.pk if one.experiment else None
        path = f"experiments/{data['experiment']}/"
    return Happening(happenings.RULE_BROKEN, f"Rule {one.rule.name}", one.sentence, path, data)
