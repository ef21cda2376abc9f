"""Another team's pages do not exist: every page is asked for by someone who is not in the team."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, reverse
from django.utils import timezone

from agents.profiles.base.taken import TakenProfile
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_run
from experiments.asking.prometheus.queries import ChannelQuery
from experiments.asking.prometheus.sources import Wanted as WantedSource
from experiments.asking.prometheus.sources import create_source
from experiments.asking.schedules.saving import Plan, create_schedule
from experiments.judging.alerts.saving_rules import WantedRule, create_rule
from experiments.models import (
    Alert,
    Application,
    Bisection,
    CapacitySearch,
    DryRun,
    Experiment,
    HardwareProfile,
    Host,
    HostProfile,
    Member,
    PinnedBaseline,
    Recipe,
    Reservation,
    Role,
    Run,
    Series,
    ShareLink,
    Team,
    Trend,
    Tuning,
    Workload,
)
from experiments.registry.documents.versions import save_version
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.hosts.reservations import reserve
from experiments.registry.notes.chart_notes import annotate
from experiments.registry.runs.run_profiles import store_run_profile
from experiments.registry.teams.invitations import invite
from experiments.registry.teams.tokens import issue
from experiments.telling.notifying.webhooks import Wanted, create_webhook, send_test
from experiments.telling.run_list.saved_views import save_view
from frontend.urls import urlpatterns
from tests.experiments.conftest import APPLICATION, RECIPE, WORKLOAD, admin, make_member, other_admin, ready_host, team

__all__ = ["admin", "make_member", "other_admin", "team"]  # fixtures of the use cases

PAGES: list[URLPattern] = [pattern for pattern in urlpatterns if "team_slug" in str(pattern.pattern)]
NOT_FOUND, WRONG_METHOD = 404, 405


@pytest.fixture(scope="module")
def one_of_each(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[Member, dict[str, dict[str, Any]]]]:
    """An admin and the arguments of each page of the team, for all tests here; nothing of it is ever committed."""
    with django_db_blocker.unblock(), transaction.atomic():
        user = get_user_model().objects.create_user("ada", password="correct horse battery")
        team = Team.objects.create(slug="perf", name="Performance")
        admin = Member.objects.create(team=team, user=user, role=Role.ADMIN)
        yield admin, arguments_of(admin)
        transaction.set_rollback(True)


@pytest.fixture
def arguments(admin: Member) -> dict[str, dict[str, Any]]:
    """The arguments of each page, made for one test."""
    return arguments_of(admin)


def arguments_of(admin: Member) -> dict[str, dict[str, Any]]:
    """Arguments of each page that name something which exists in the team, by the page's name."""
    host = ready_host(admin, "sut")
    profile = HardwareProfile.objects.create(team=admin.team, digest="a" * 64, facts={"cpu.model": "one"})
    HostProfile.objects.create(host=host, profile=profile, last_seen_at=timezone.now())
    series = Series.objects.create(team=admin.team, fingerprint="f" * 64, application="a", workload="w", tool="wrk")
    trend = Trend.objects.create(series=series, metric="throughput_rps")
    alert = Alert.objects.create(team=admin.team, trend=trend, kind="missing", state="confirmed", before_at_s=0.0)
    documents = {
        "application": _version(admin, Application, APPLICATION),
        "recipe": _version(admin, Recipe, RECIPE),
        "workload": _version(admin, Workload, WORKLOAD),
    }
    choice = Choice(documents["application"], documents["recipe"], documents["workload"], host, [host])
    run = launch_run(admin, choice)
    experiment = create_experiment(
        admin,
        name="A question",
        workload=documents["workload"],
        candidates=[Candidate("only", documents["application"], documents["recipe"], host, [host])],
    )
    token, _ = issue(admin, name="ci", scopes=["read"])
    reservation = reserve(admin, [host], until=timezone.now() + timedelta(hours=1))
    drivers = driver_set([host])
    dry_run = DryRun.objects.create(team=admin.team, sut=host, drivers=drivers, spec=run.spec)
    artifact = run.artifacts.create(name="out.txt", sha256="0" * 64, content=b"x")
    rated = _version(admin, Workload, WORKLOAD | {"driver": {"kind": "vegeta", "offered_rate_rps": 1}})
    search = CapacitySearch.objects.create(
        team=admin.team, name="it", **documents | {"workload": rated}, sut=host, drivers=drivers,
        objective_metric="latency_p99_ms", objective_ms=50, start_low_rps=1000, start_high_rps=2000,
    )  # fmt: skip
    by_word = {"number": run.number, "experiment_id": experiment.pk, "artifact_id": artifact.pk, "action": "check"}
    by_word["search_id"] = search.pk
    by_word |= automation_of(admin, run)
    by_word["name"] = "tomcat-baseline"  # of the library and of its published figures
    by_word["topic"] = "validity"
    by_word["profile"] = store_run_profile(run, b"main;handle 3\n", TakenProfile("perf", event="cpu-clock")).name
    by_word["metric"] = "cart_age_ms"
    by_word["view_id"] = save_view(admin, "mine", "").pk
    by_word["baseline_id"] = PinnedBaseline.objects.create(team=admin.team, name="release", run=run).pk
    by_word["rule_id"] = create_rule(admin, WantedRule("failed", "run_failed")).pk
    by_word["plot_name"] = "throughput_rps"
    by_word["form"] = "md"
    link = ShareLink.objects.create(team=admin.team, kind="run", subject="run #1", token_digest="0" * 64, sheet={})
    by_page = {
        "annotate_series": series.pk,
        "change_annotation": annotate(admin, series, timezone.now(), "a note").pk,
        "dry_run_result": dry_run.pk,
        "revoke_token": token.pk,
        "member_change": admin.pk,
        "invitation_change": invite(admin, "viewer").invitation.pk,
        "extend_reservation": reservation.pk,
        "end_reservation": reservation.pk,
        "expect_level": trend.pk,
        "pin_trend": trend.pk,
        "revoke_share": link.pk,
        **dict.fromkeys(("alert", "triage_alert", "rerun_ends"), alert.pk),
        **{name: document.pk for name, document in documents.items()},
    }
    found: dict[str, dict[str, Any]] = {}
    for page in PAGES:
        name = str(page.name)
        given: dict[str, Any] = {}
        for word in page.pattern.converters:
            if word == "team_slug":
                continue
            if word == "kind":
                given[word] = "recipes"
            elif word == "pk":
                given[word] = by_page.get(name, documents["recipe"].pk if "document" in name else host.pk)
            else:
                given[word] = by_word[word]
        found[name] = given
    return found


def automation_of(admin: Member, run: Run) -> dict[str, int]:
    """A schedule, a bisection, a tuning search, a webhook with a delivery and a Prometheus source."""
    schedule = create_schedule(admin, Plan("nightly", "0 0 * * *", run=run))
    parts = {name: getattr(run, name) for name in ("application", "recipe", "workload", "sut", "drivers")}
    bisection = Bisection.objects.create(team=admin.team, name="which", **parts, candidates=["1", "2"])
    tuning = Tuning.objects.create(
        team=admin.team, name="best", **parts, space={"parameters": [{"name": "nofile", "low": 1024, "high": 70000}]},
        default={"nofile": 65535}, metric="throughput_rps", higher_is_better=True, budget_runs=20, seed=1,
    )  # fmt: skip
    webhook, _ = create_webhook(admin, Wanted("chat", "https://hooks.example.com/", ["run.finished"]))
    delivery = send_test(admin, webhook)
    queries = [ChannelQuery("up", "up")]
    found = {
        "schedule": schedule,
        "bisection": bisection,
        "tuning": tuning,
        "webhook": webhook,
        "delivery": delivery,
        "source": create_source(admin, WantedSource("prod", "https://prometheus.example.com", queries)),
    }
    return {f"{name}_id": int(one.pk) for name, one in found.items()}


def _version(member: Member, model: Any, body: dict[str, Any]) -> Any:
    return save_version(member, model, "it", body)


@pytest.mark.django_db
@pytest.mark.parametrize("name", [str(page.name) for page in PAGES])
def test_a_page_of_another_team_does_not_exist(
    name: str, one_of_each: tuple[Member, dict[str, dict[str, Any]]], other_admin: Member
) -> None:
    admin, given = one_of_each
    address = reverse(name, kwargs={"team_slug": admin.team.slug, **given[name]})
    stranger, anonymous, member = Client(), Client(), Client()
    stranger.force_login(other_admin.user)
    admin.user.is_staff = True  # the operator's page is there for staff only
    admin.user.save()
    member.force_login(admin.user)
    counted = (Run, Experiment, Host, Recipe, Reservation)
    before = [model.objects.count() for model in counted]
    nowhere = reverse(name, kwargs={"team_slug": "no-such-team", **given[name]})
    for ask in (stranger.get, stranger.post):
        answer, same = ask(address), ask(nowhere)
        assert answer.status_code in (NOT_FOUND, WRONG_METHOD)
        assert answer.status_code == same.status_code
        assert answer.content.replace(b"perf", b"") == same.content.replace(b"no-such-team", b"")
    assert NOT_FOUND in (stranger.get(address).status_code, stranger.post(address).status_code)
    for ask in (anonymous.get, anonymous.post):
        answer = ask(address)
        sent_to_login = (answer.status_code, answer.headers.get("Location", "").split("?")[0])
        assert sent_to_login == (302, "/accounts/login/") or answer.status_code == WRONG_METHOD
    assert [model.objects.count() for model in counted] == before
    assert member.get(address).status_code != NOT_FOUND
