"""The limits of a part of the histories, on their page."""

from __future__ import annotations

from django.urls import reverse

from experiments.models import HistoryLimits, Member, Role, Series
from tests.experiments.conftest import MakeMember
from tests.frontend.test_forms_access import signed_in


def test_an_admin_mutes_improvements_of_one_series_and_sees_where_each_limit_was_set(admin: Member) -> None:
    series = Series.objects.create(
        team=admin.team, fingerprint="f" * 64, application="app", workload="load", tool="wrk 4", latency_basis=""
    )
    client, page = signed_in(admin), reverse("history_limits", args=[admin.team.slug])
    assert "Choose a series" in client.get(page).content.decode()
    part = f"{page}?series={series.pk}&metric=throughput_rps"

    answer = client.post(part, {"history_mutes_improvements": "yes", "history_margin_ratio": "4"})

    assert answer.status_code == 302
    assert HistoryLimits.objects.get().values == {"history_mutes_improvements": True, "history_margin_ratio": 0.04}
    shown = client.get(part).content.decode()
    assert "metric in series" in shown
    assert "Set for parts" in shown
    assert client.post(part, {"history_margin_ratio": "400"}).status_code == 422

    client.post(part, {})

    assert not HistoryLimits.objects.exists()


def test_only_admins_see_them(admin: Member, make_member: MakeMember) -> None:
    editor = signed_in(make_member(admin.team, Role.EDITOR))
    assert editor.get(reverse("history_limits", args=[admin.team.slug])).status_code == 403


def test_limits_of_an_unknown_part_are_not_those_of_a_wider_one(admin: Member) -> None:
    client, page = signed_in(admin), reverse("history_limits", args=[admin.team.slug])
    for part in (f"series={'f' * 64}&metric=throughput_rps", "metric=speed"):
        assert client.get(f"{page}?{part}").status_code == 404
        assert client.post(f"{page}?{part}", {"history_margin_ratio": "4"}).status_code == 404
    assert not HistoryLimits.objects.exists()
