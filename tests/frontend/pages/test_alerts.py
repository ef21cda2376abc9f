"""The pages of alerts, and what Trends, Overview and the navigation say of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from experiments.judging.alerts.trends import rebuild
from experiments.models import Alert, AlertRule, BrokenRule, HardwareProfile, Member, Role, Run, Series, Trend
from experiments.registry.runs.series import extend_series
from tests.experiments.conftest import MakeMember
from tests.frontend.conftest import FINGERPRINT, MakeRun
from tests.frontend.flat import flat

DAY = timedelta(days=1)
BASIS = "service_time"


@pytest.fixture
def alert(make_run: MakeRun) -> Alert:
    """The change point of eight nights at 1,000 requests/s and five at 900; the SUT's kernel key differs in each."""
    start = timezone.now() - 20 * DAY
    levels = [1000.0, 1004.0, 996.0, 1002.0] * 2 + [900.0, 903.0, 897.0, 901.0, 899.0]
    for night, value in enumerate(levels):
        run = make_run(throughput_rps=value, events=(), finished_at=start + night * DAY)
    rebuild(extend_series(run, application="app v1", workload="load v1", tool="wrk 4.2.0", latency_basis=BASIS))
    return Alert.objects.get(trend__metric="throughput_rps")


def page(browser: Client, path: str) -> str:
    answer = browser.get(f"/t/perf/{path}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_list_shows_the_change_its_runs_and_what_changed_there(browser: Client, alert: Alert) -> None:
    shown = page(browser, "alerts/")

    for expected in ("Throughput", "−10.0 %", "#8", "#9", "Confirmed", "Untriaged", "sysctl.net.core.somaxconn 8 → 9"):
        assert expected in shown


@pytest.mark.parametrize("query, there", [("", True), ("triage=", True), ("triage=fixed", False)])
def test_the_list_is_filtered(browser: Client, alert: Alert, query: str, there: bool) -> None:
    assert (f"alerts/{alert.pk}/" in page(browser, f"alerts/?{query}")) is there


def test_a_filter_that_does_not_exist_is_named(browser: Client, alert: Alert) -> None:
    answer = browser.get("/t/perf/alerts/?triage=done")

    assert answer.status_code == 422
    assert "triage is one of" in answer.content.decode()


def test_the_page_shows_both_runs_and_the_drift_between_them(browser: Client, alert: Alert) -> None:
    shown = page(browser, f"alerts/{alert.pk}/")

    assert "Throughput fell by 10.0 % with run #9: from 1,000 to 900 requests/s" in shown
    assert "Drift: nobody asked, yet it differs (1)" in shown
    assert "/t/perf/compare/?runs=8,9" in shown


def test_the_page_of_an_alert_whose_run_is_gone_still_opens(browser: Client, alert: Alert) -> None:
    Run.objects.filter(alerts=alert).delete()

    assert "One of both runs is gone" in page(browser, f"alerts/{alert.pk}/")


def test_an_editor_says_what_it_is(browser: Client, admin: Member, alert: Alert) -> None:
    said = {"triage": "infra", "owner": admin.pk, "note": "switch"}
    answer = browser.post(f"/t/perf/alerts/{alert.pk}/triage", said, follow=True)

    assert "The alert is now: infrastructure." in answer.content.decode()
    alert.refresh_from_db()
    assert (alert.triage, alert.owner, alert.note) == ("infra", admin.user, "switch")
    wrong = {"owner": "999999", "note": "a long look at the switch"}
    answer = browser.post(f"/t/perf/alerts/{alert.pk}/triage", wrong, follow=True)
    alert.refresh_from_db()
    assert alert.owner == admin.user
    assert alert.note == "switch"
    assert "a long look at the switch</textarea>" in answer.content.decode(), "what was typed is still there"


def test_what_changed_at_the_same_point_is_shown_and_triaged_together(browser: Client, alert: Alert) -> None:
    for run in Run.objects.filter(state=Run.State.FINISHED):
        run.metrics = {**run.metrics, "latency_p50_ms": 12_000 / run.metrics["throughput_rps"]}
        run.save()
    rebuild(Series.objects.get())
    shown = page(browser, f"alerts/{alert.pk}/")
    assert "Changed at the same point" in shown
    assert f"mean of {alert.n_before} points" in shown

    browser.post(f"/t/perf/alerts/{alert.pk}/triage", {"triage": "infra"})
    other = Alert.objects.get(trend__metric="latency_p50_ms")
    assert (other.triage, other.worse) == ("untriaged", True)

    browser.post(f"/t/perf/alerts/{alert.pk}/triage", {"triage": "infra", "same_point": "on"})
    other.refresh_from_db()
    assert other.triage == "infra"


def test_a_launcher_sees_it_and_may_not_triage(
    alert: Alert, make_member: Callable[..., Member], browser_of: Callable[[Member], Client]
) -> None:
    browser = browser_of(make_member(alert.team, Role.LAUNCHER))

    assert "Save" not in page(browser, f"alerts/{alert.pk}/")
    assert browser.post(f"/t/perf/alerts/{alert.pk}/triage", {"triage": "fixed"}).status_code == 403


def test_both_ends_are_queued_again(browser: Client, alert: Alert) -> None:
    before = Run.objects.count()

    shown = browser.post(f"/t/perf/alerts/{alert.pk}/rerun", follow=True).content.decode()

    assert "Queued #14 and #15." in shown
    assert Run.objects.filter(state=Run.State.QUEUED).count() == Run.objects.count() - before == 2


def test_an_imported_end_cannot_be_queued_again(browser: Client, alert: Alert) -> None:
    Run.objects.filter(pk__in=[alert.run_before_id, alert.run_after_id]).update(spec=None)

    shown = browser.post(f"/t/perf/alerts/{alert.pk}/rerun", follow=True).content.decode()

    assert "Run #8: An imported run has nothing to execute again." in shown


def test_mails_are_asked_for_by_those_who_have_an_address(browser: Client, admin: Member) -> None:
    shown = browser.post("/t/perf/alerts/mails", {"mails": "on"}, follow=True).content.decode()
    assert "has no mail address" in shown
    admin.user.email = "ada@example.org"
    admin.user.save()

    shown = browser.post("/t/perf/alerts/mails", {"mails": "on"}, follow=True).content.decode()
    assert "You get a mail at ada@example.org for each new alert." in shown
    assert Member.objects.get(pk=admin.pk).mails_alerts
    browser.post("/t/perf/alerts/mails", {})
    assert not Member.objects.get(pk=admin.pk).mails_alerts


def test_the_navigation_counts_and_overview_lists_what_is_untriaged(browser: Client, alert: Alert) -> None:
    assert 'title="1 untriaged"' in page(browser, "")
    assert "Throughput fell by 10.0 %: app v1, load v1" in page(browser, "")

    browser.post(f"/t/perf/alerts/{alert.pk}/triage", {"triage": "acknowledged"})

    assert "untriaged" not in page(browser, "")


def test_trends_lists_change_points_and_takes_the_expected_level(browser: Client, alert: Alert) -> None:
    shown = page(browser, "trends/")
    assert f"/t/perf/alerts/{alert.pk}/" in shown
    assert "not said yet" in flat(shown)

    answer = browser.post(f"/t/perf/trends/{alert.trend_id}/expect", follow=True).content.decode()

    assert "The present level of throughput is expected" in answer
    assert Trend.objects.get(pk=alert.trend_id).expected_value == alert.mean_after


def points(browser: Client, query: str) -> dict[str, Any]:
    found: dict[str, Any] = browser.get(f"/t/perf/trends/points?{query}").json()
    return found


@pytest.mark.parametrize("query", ["metric=%00", "metric=speed", "recipe=%00"])
def test_points_of_what_cannot_be_are_refused(browser: Client, alert: Alert, query: str) -> None:
    assert browser.get(f"/t/perf/trends/points?{query}").status_code == 400


def test_a_note_that_cannot_be_stored_is_refused(browser: Client, alert: Alert) -> None:
    said = {"triage": "infra", "note": "a\0b"}
    answer = browser.post(f"/t/perf/alerts/{alert.pk}/triage", said, follow=True)
    alert.refresh_from_db()
    assert "NUL character" in answer.content.decode()
    assert (alert.triage, alert.note) == ("untriaged", "")


def test_the_chart_gets_change_points_and_expected_levels(browser: Client, alert: Alert) -> None:
    browser.post(f"/t/perf/trends/{alert.trend_id}/expect")

    found = points(browser, "metric=throughput_rps")

    assert found["changes"] == [
        {
            "at": found["points"][8]["at"],
            "number": 9,
            "recipe": "limits",
            "change_ratio": pytest.approx(-0.1, abs=0.001),
            "worse": True,
            "state": "confirmed",
            "triage": "expected",
            "url": f"/t/perf/alerts/{alert.pk}/",
        }
    ]
    assert [level["value"] for level in found["levels"]] == [pytest.approx(900, abs=1)]
    assert points(browser, "metric=sut_cpu_ratio")["changes"] == []


def test_machines_that_are_measured_in_turn_have_a_line_each_and_no_marks(
    browser: Client, alert: Alert, make_run: MakeRun
) -> None:
    arm = HardwareProfile.objects.create(team=alert.team, digest="3" * 64, facts={"cpu.architecture": "aarch64"})
    days = [timezone.now() + timedelta(days=day) for day in range(6)]
    for day in days:
        make_run(throughput_rps=1000.0, events=(), fingerprint=FINGERPRINT, finished_at=day)
        other = {"fingerprint": "e" * 64, "sut_profile": arm, "finished_at": day + timedelta(hours=1)}
        late = make_run(throughput_rps=700.0, events=(), **other)
    extend_series(late, application="app v1", workload="load v1", tool="wrk 4.2.0", latency_basis=BASIS)
    chosen = Series.objects.get(fingerprint=FINGERPRINT).pk
    found = points(browser, f"series={chosen}&hardware=any")
    assert (found["in_turn"], found["environments"]) == (True, [])
    assert {one["value"] for one in found["points"] if "aarch64" in one["environment"]} == {700.0}
    assert points(browser, f"series={chosen}")["in_turn"] is False


def test_the_chart_marks_where_machine_or_tool_changed(browser: Client, alert: Alert, make_run: MakeRun) -> None:
    old, new = (
        HardwareProfile.objects.create(team=alert.team, digest=digest * 64, facts={"kernel.release": kernel})
        for digest, kernel in (("1", "6.1"), ("2", "6.12"))
    )
    Series.objects.update(sut_profile=old)
    late = make_run(throughput_rps=950.0, events=(), fingerprint="e" * 64, sut_profile=new, finished_at=timezone.now())
    extend_series(late, application="app v1", workload="load v1", tool="wrk 4.2.1", latency_basis=BASIS)
    chosen = Series.objects.get(fingerprint=FINGERPRINT).pk

    found = points(browser, f"series={chosen}&hardware=any")

    assert [one["text"] for one in found["environments"]] == ["kernel 6.12, tool wrk 4.2.1"]
    assert datetime.fromisoformat(found["environments"][0]["at"]).astimezone(UTC) == late.finished_at
    assert points(browser, f"series={chosen}")["environments"] == []


def test_points_stand_in_the_order_of_time(browser: Client, alert: Alert, make_run: MakeRun) -> None:
    early = make_run(throughput_rps=990.0, events=(), finished_at=timezone.now() - 30 * DAY)

    assert points(browser, "metric=throughput_rps")["points"][0]["number"] == early.number


def test_rules_of_the_team_have_a_page(
    admin: Member, make_member: MakeMember, browser_of: Callable[[Member], Client], make_run: MakeRun
) -> None:
    client = browser_of(admin)
    place = reverse("alert_rules", args=["perf"])
    given = {"name": "slow", "kind": "figure", "metric": "latency_p99_ms", "side": "above", "is_active": "on"}
    wrong = client.post(place, given)
    assert (wrong.status_code, "Give the limit" in wrong.content.decode()) == (422, True)
    assert client.post(place, given | {"limit": "5", "labels": "branch=main"}).status_code == 302
    rule = AlertRule.objects.get()
    BrokenRule.objects.create(rule=rule, run=make_run(throughput_rps=100.0), sentence="It is above.")
    page = client.get(place).content.decode()
    for words in ("Latency, p99 above 5 ms", "branch=main", "It is above."):
        assert words in page
    own = reverse("alert_rule", args=["perf", rule.pk])
    assert 'value="slow"' in client.get(own).content.decode()
    assert client.post(own, given | {"limit": "7"}).status_code == 302
    viewer = browser_of(make_member(admin.team, Role.VIEWER))
    assert "New rule" not in viewer.get(place).content.decode()
    assert [viewer.post(one, given).status_code for one in (place, own)] == [403, 403]
    assert client.post(reverse("delete_alert_rule", args=["perf", rule.pk])).status_code == 302
    assert not AlertRule.objects.exists()
