"""The page of a team's limits, and how a run shows what it was judged by."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from experiments.analysis.thresholds import Thresholds, limits
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Member, Role, Team
from frontend.pages.thresholds.forms import ThresholdsForm, title_of
from tests.experiments.conftest import MakeMember
from tests.experiments.finished import finish_next, report, whole_run


def posted(**changes: str) -> dict[str, str]:
    """The form as a browser sends it, with these fields changed."""
    form = ThresholdsForm(Thresholds())
    data = {name: str(form[name].value()) for name in form.fields if form[name].value() is not False}
    return {**data, **changes}


@pytest.mark.parametrize("limit", list(limits()), ids=lambda limit: limit.name)
def test_a_default_goes_through_the_form_unchanged(limit: Any) -> None:
    form = ThresholdsForm(Thresholds(), posted())
    assert form.is_valid(), form.errors
    changes = form.changes()
    assert changes[limit.name] == pytest.approx(limit.default, rel=1e-12)
    assert Thresholds.model_validate(changes).changed() == {}


@pytest.mark.parametrize(
    ("name", "title"),
    [("steal_warn_ratio", "Steal warn"), ("sut_cpu_ratio", "SUT CPU"), ("clock_warn_s", "Clock warn")],
)
def test_a_limit_has_a_title_that_can_be_read(name: str, title: str) -> None:
    assert title_of(name) == title


def test_an_admin_sets_a_limit_in_percent_and_takes_all_back(admin: Member, client: Client) -> None:
    client.force_login(admin.user)
    address = reverse("thresholds", args=[admin.team.slug])
    page = client.get(address).content.decode()
    assert "A failed request is cheaper than a good one" in page
    assert client.post(address, posted(error_budget_ratio="0.1", driver_cpu_invalid="on")).status_code == 302
    team_now = Team.objects.get(pk=admin.team_id)
    assert team_now.thresholds == {"error_budget_ratio": 0.001, "driver_cpu_invalid": True}
    assert "changed" in client.get(address).content.decode()
    client.post(address, posted(error_budget_ratio="", driver_cpu_invalid="on"))
    team_now.refresh_from_db()
    assert team_now.thresholds == {"driver_cpu_invalid": True}
    client.post(address, {"defaults": "1"})
    team_now.refresh_from_db()
    assert team_now.thresholds == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steal_warn_ratio": "150"}, "less than or equal to 100"),
        ({"steal_warn_ratio": "20"}, "steal_warn_ratio must not be above steal_invalid_ratio"),
        ({"clock_warn_s": "soon"}, "Enter a number"),
    ],
)
def test_a_value_that_makes_no_sense_is_told_on_the_page(
    admin: Member, client: Client, changes: dict[str, str], words: str
) -> None:
    client.force_login(admin.user)
    answer = client.post(reverse("thresholds", args=[admin.team.slug]), posted(**changes))
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert Team.objects.get(pk=admin.team_id).thresholds == {}


def test_others_do_not_see_the_page(team: Team, make_member: MakeMember, client: Client) -> None:
    client.force_login(make_member(team, Role.EDITOR, "edi").user)
    assert client.get(reverse("thresholds", args=[team.slug])).status_code == 403


def test_a_run_shows_the_evidence_the_limit_and_the_explanation_of_each_finding(
    admin: Member, stock: dict[str, Any], client: Client
) -> None:
    client.force_login(admin.user)
    client.post(reverse("thresholds", args=[admin.team.slug]), posted(error_budget_ratio="0.1"))
    run = launch_run(admin, Choice(**stock))
    finish_next(whole_run(report(errors_read=500)))
    page = client.get(reverse("run", args=[admin.team.slug, run.number])).content.decode()
    assert "500 errors beside 10,000 completed requests (budget 0.1 %)" in page
    assert "<dt>errors_read</dt><dd>500</dd>" in page
    assert "<dt>threshold error_budget_ratio</dt><dd>0.001</dd>" in page
    assert f'href="/t/{admin.team.slug}/help/validity/#errors"' in page
    assert "Not checked: the SUT shows no frequency governor" in page
