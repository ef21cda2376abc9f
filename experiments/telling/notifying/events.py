"""What is told of what happened, in the transaction that makes it true.

Nobody's run fails because nobody could be told: what goes wrong here is logged.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction

from experiments.judging.alerts.wording import sentence as alert_sentence
from experiments.judging.alerts.wording import title as alert_title
from experiments.judging.alerts.wording import trend_name
from experiments.models import Alert, Delivery, Experiment, Host, Member, Occasion, Run, Team, Webhook
from experiments.registry.database_clock import database_now
from experiments.registry.events import ExperimentEnded, HostQuarantined, OccasionMissed, RunEnded
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.workers.outbox import DELIVER, send
from experiments.telling.notifying import happenings
from experiments.telling.notifying.happenings import Happening
from experiments.telling.notifying.messages import body_for, mail_body

logger = logging.getLogger(__name__)


def run_ended(event: RunEnded) -> None:
    """A run that had started came to its end, whatever its outcome."""
    run = event.run
    if run.is_demo or run.started_at is None:
        return
    failed = run.outcome in (Run.Outcome.FAILED, Run.Outcome.LOST) and not run.is_twin
    said = run.failure or f"It {run.get_outcome_display().lower()}"
    if not run.failure and run.throughput_rps is not None:
        said += f" with {run.throughput_rps:,.0f} requests/s, {run.validity or 'not judged'}"
    data = {
        "number": run.number,
        "outcome": run.outcome,
        "validity": run.validity,
        "restore": run.restore,
        "failure": run.failure,
        "experiment": run.experiment_id,
        "labels": run.labels,
        "throughput_rps": run.throughput_rps,
        "latency_p99_ms": None if run.hides_latency else run.latency_p99_ms,
    }
    title = f"Run #{run.number} {run.get_outcome_display().lower()}"
    when = {"began_at": run.started_at, "ended_at": run.finished_at}
    happening = Happening(happenings.RUN_FINISHED, title, said.rstrip(".") + ".", f"runs/{run.number}/", data, **when)
    tell(run.team_id, happening, mail_to="mails_failed_runs" if failed else "")


def experiment_ended(event: ExperimentEnded) -> None:
    """All runs of an experiment are over, and its stored verdicts are final. One that was cancelled is no news."""
    experiment = event.experiment
    if experiment.is_demo or experiment.state != Experiment.State.FINISHED:
        return
    verdicts = experiment.verdicts.filter(metric__in=experiment.deciding_metrics).select_related("candidate")
    found = sorted(verdicts, key=lambda one: (one.candidate.position, one.metric))
    units = metrics_of(experiment.team_id, experiment.deciding_metrics)
    sentences = [one.sentence for one in found] or ["It compares nothing: there is one variant."]
    data: dict[str, Any] = {
        "experiment": experiment.pk,
        "name": experiment.name,
        "labels": experiment.labels,
        "verdicts": [
            {
                "candidate": one.candidate.name,
                "metric": one.metric,
                "unit": units[one.metric].unit,
                "outcome": one.outcome,
                "estimate_pct": one.numbers.get("estimate_pct"),
                "ci95_pct": one.numbers.get("ci95_pct"),
            }
            for one in found
        ],
    }
    title = f"Verdict: {experiment.name}"
    path = f"experiments/{experiment.pk}/"
    happening = Happening(happenings.VERDICT_REACHED, title, " ".join(sentences), path, data)
    tell(experiment.team_id, happening, mail_to="mails_verdicts")


def alert_raised(alert: Alert) -> None:
    """A confirmed alert that nobody has triaged. Mails about alerts: `alert_mails`."""
    data = {"alert": alert.pk, "kind": alert.kind, "metric": alert.trend.metric, "trend": trend_name(alert.trend)}
    happening = Happening(
        happenings.ALERT_RAISED,
        alert_title(alert),
        alert_sentence(alert),
        f"alerts/{alert.pk}/",
        data,
        began_at=alert.changed_at,
    )
    tell(alert.team_id, happening)


def host_quarantined(event: HostQuarantined) -> None:
    """A run could not be proven undone on a host, so nothing starts there."""
    run, reason = event.run, event.reason
    host = Host.objects.get(pk=event.host_id)
    data = {"host": host.name, "run": run.number, "reason": reason}
    title = f"{host.name} is out of service"
    tell(run.team_id, Happening(happenings.HOST_QUARANTINED, title, reason, f"hosts/{host.pk}/", data))


def occasion_missed(event: OccasionMissed) -> None:
    """A time of a schedule that launched nothing."""
    occasion, schedule = event.occasion, event.occasion.schedule
    failed = occasion.outcome == Occasion.Outcome.FAILED
    data = {
        "schedule": schedule.pk,
        "name": schedule.name,
        "due_at": occasion.due_at.isoformat(timespec="seconds"),
        "outcome": occasion.outcome,
        "state": schedule.state,
    }
    kind = happenings.SCHEDULE_FAILED if failed else happenings.SCHEDULE_SKIPPED
    title = f"Schedule {schedule.name} {'failed' if failed else 'skipped a time'}"
    path = f"experiments/schedules/{schedule.pk}/"
    tell(schedule.team_id, Happening(kind, title, occasion.sentence, path, data))


def tell(team_id: int, happening: Happening, *, mail_to: str = "") -> None:
    """Store a delivery for each webhook that asked, and each member whose field `mail_to` is set."""
    try:
        with transaction.atomic():
            _store(team_id, happening, mail_to)
    except Exception:
        logger.exception("nobody could be told: %s of team %s", happening.event, team_id)


def deliver_later(delivery: Delivery) -> None:
    """Have a worker send it once it is stored; `deliver_due` repeats what gets lost."""
    delivery_id = delivery.pk
    transaction.on_commit(lambda: send(DELIVER, delivery_id), robust=True)


def new_delivery(webhook: Webhook, happening: Happening, team: Team) -> Delivery:
    """The message of this happening to this webhook, due now."""
    now = database_now()
    delivery = Delivery(team=team, webhook=webhook, event=happening.event, next_at=now)
    delivery.subject = happening.title[:200]
    delivery.body = body_for(webhook, happening, team, public_id=delivery.public_id, at=now)
    delivery.save()
    deliver_later(delivery)
    return delivery


def _store(team_id: int, happening: Happening, mail_to: str) -> None:
    webhooks = list(Webhook.objects.filter(team_id=team_id, is_active=True, events__contains=[happening.event]))
    members: list[Member] = []
    if mail_to:
        wanting = Member.objects.filter(team_id=team_id, user__is_active=True, **{mail_to: True})
        members = list(wanting.exclude(user__email="").select_related("user"))
    if not webhooks and not members:
        return
    team = Team.objects.get(pk=team_id)
    for webhook in webhooks:
        new_delivery(webhook, happening, team)
    for member in members:
        mail = Delivery.objects.create(
            team=team,
            member=member,
            event=happening.event,
            subject=f"[BenchHub] {happening.title}"[:200],
            body=mail_body(happening, team),
            next_at=database_now(),
        )
        deliver_later(mail)
