"""A team's own rules for alerts: what breaks them, who is told, and who may make them."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.judging.alerts.own_rules import broken_by_runs, broken_by_verdicts
from experiments.judging.alerts.saving_rules import WantedRule, change_rule, create_rule, wanted_of
from experiments.judging.verdicts.judging import store_verdicts
from experiments.models import AlertRule, AuditEntry, BrokenRule, Delivery, Member, Role, Run
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.events import ExperimentEnded, RunEnded, tell
from experiments.registry.experiments.rules import Rules
from experiments.telling.notifying.webhooks import Wanted, create_webhook
from tests.experiments.conftest import MakeMember
from tests.experiments.trend_runs import AddRun
from tests.frontend.pages.test_experiments import finish, made

LATENCY = WantedRule("slow", "figure", "latency_p99_ms", "above", 100.0)


def with_latency(add_run: AddRun, p99_ms: float, **more: Any) -> Run:
    return add_run(0, 1000.0, metrics={"throughput_rps": 1000.0, "latency_p99_ms": p99_ms}, **more)


@pytest.mark.parametrize(
    ("side", "value", "breaks"),
    [("above", 100.5, True), ("above", 100.0, False), ("below", 99.9, True), ("below", 100.0, False)],
)
def test_a_figure_breaks_a_rule_beyond_its_limit(
    add_run: AddRun, admin: Member, side: str, value: float, breaks: bool
) -> None:
    create_rule(admin, WantedRule("p99", "figure", "latency_p99_ms", side, 100.0))
    found = broken_by_runs(admin.team_id, [run := with_latency(add_run, value)])
    assert [one.run for one in found] == ([run] if breaks else [])
    if breaks:
        assert found[0].sentence == f"Run #{run.number} of home page: Latency, p99 is {value:.4g} ms, {side} 100 ms."


@pytest.mark.parametrize(
    "why_not",
    [
        {"validity": "invalid"},
        {"hides_latency": True},
        {"is_demo": True},
        {"labels": {"branch": "feature"}},
        {"workload": None},
    ],
)
def test_what_does_not_count_or_is_not_watched_breaks_none(
    add_run: AddRun, admin: Member, why_not: dict[str, Any]
) -> None:
    create_rule(admin, WantedRule("p99", "figure", "latency_p99_ms", "above", 100.0, "home page", {"branch": "main"}))
    assert broken_by_runs(admin.team_id, [with_latency(add_run, 500.0, labels={"branch": "main"})])
    assert not broken_by_runs(admin.team_id, [with_latency(add_run, 500.0, **{"labels": {"branch": "main"}} | why_not)])


def test_a_failed_run_and_a_lost_verdict_break_rules_of_theirs(admin: Member, stock: dict[str, Any]) -> None:
    create_rule(admin, WantedRule("failed", "run_failed"))
    create_rule(admin, WantedRule("worse", "verdict"))
    create_rule(admin, WantedRule("off", "verdict", is_active=False))
    experiment = made(admin, stock, Rules(), variants=3)
    finish(experiment, 1.0, 1.2, 1.1)
    assert broken_by_verdicts(experiment) == []
    finish(experiment, 1.0, 1.2, 0.8)
    (broken,) = broken_by_verdicts(experiment)
    assert broken.rule.name == "worse"
    assert "v2 is slower than v0 by 20.0 %" in broken.sentence
    assert "v1" not in broken.sentence
    run = experiment.runs.order_by("number")[0]
    run.outcome, run.failure = "failed", "The server did not start.\nmore"
    (broken,) = broken_by_runs(admin.team_id, [run])
    assert broken.sentence == f"Run #{run.number} of home page failed. The server did not start."
    run.profiled = True  # the twin of a run: without it a profile is missing, and no measurement
    assert broken_by_runs(admin.team_id, [run]) == []
    run.experiment = None
    assert len(broken_by_runs(admin.team_id, [run])) == 1


def test_a_broken_rule_is_told_to_webhooks_and_to_those_who_want_mails(
    add_run: AddRun, admin: Member, stock: dict[str, Any]
) -> None:
    admin.user.email = "ada@example.org"
    admin.user.save()
    Member.objects.filter(pk=admin.pk).update(mails_alerts=True)
    create_webhook(admin, Wanted("chat", "https://hooks.example.com/", ["rule.broken"]))
    create_rule(admin, LATENCY)
    run = with_latency(add_run, 250.0, started_at="2026-03-01T02:00:00Z")
    tell(RunEnded(run))
    assert BrokenRule.objects.get().run == run
    webhook, mail = Delivery.objects.filter(event="rule.broken").order_by("member_id")
    assert '"value": 250.0' in (webhook.body if webhook.webhook_id else mail.body)
    assert {one.subject for one in (webhook, mail)} == {"Rule slow", "[BenchHub] Rule slow"}
    experiment = made(admin, stock, Rules())
    finish(experiment, 1.0, 0.5)
    create_rule(admin, WantedRule("worse", "verdict"))
    experiment.state = "finished"
    store_verdicts(experiment, spent=True)
    tell(ExperimentEnded(experiment))
    assert BrokenRule.objects.latest("pk").experiment == experiment


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"kind": "weather"}, "kind"),
        ({"metric": "happiness"}, "metric"),
        ({"side": ""}, "side"),
        ({"limit": None}, "limit"),
        ({"limit": float("nan")}, "limit"),
        ({"name": " slow"}, "name"),
        ({"name": "other"}, "name"),
        ({"workload": "x" * 121}, "workload"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_by_its_field(admin: Member, wrong: dict[str, Any], field: str) -> None:
    create_rule(admin, WantedRule("other", "run_failed"))
    with pytest.raises(RequestError) as refused:
        create_rule(admin, WantedRule(**vars(LATENCY) | wrong))
    assert refused.value.field == field
    assert AlertRule.objects.count() == 1


def test_rules_are_made_and_changed_by_editors_and_the_trail_has_it(admin: Member, make_member: MakeMember) -> None:
    rule = create_rule(admin, LATENCY)
    with pytest.raises(Forbidden):
        create_rule(make_member(admin.team, Role.LAUNCHER), WantedRule("other", "run_failed"))
    change_rule(admin, rule, WantedRule(**vars(wanted_of(rule)) | {"kind": "run_failed"}))
    rule.refresh_from_db()
    assert (rule.metric, rule.side, rule.limit) == ("", "", None)
    assert AuditEntry.objects.filter(action__startswith="alert_rule.").count() == 2
