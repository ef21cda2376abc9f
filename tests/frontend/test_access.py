"""Who sees which page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from experiments.models import Member, Role, Run, Team
from tests.experiments.conftest import MakeMember
from tests.frontend.conftest import MakeRun

BrowserOf = Callable[[Member], Client]
PAGES = ("", "runs/1/", "runs/1/samples", "runs/1/log", "runs/1/events", "experiments/", "compare/", "trends/")


@pytest.mark.parametrize("page", PAGES)
def test_anonymous_visitors_are_sent_to_the_login_page(page: str, team: Team) -> None:
    answer = Client().get(f"/t/{team.slug}/{page}")

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/accounts/login/?next=/t/perf/")


@pytest.mark.parametrize(
    ("method", "path", "headers", "expected"),
    [
        ("get", "runs/", {"HX-Request": "true"}, (401, None)),
        ("post", "runs/new/preview", {"HX-Request": "true"}, (401, None)),
        ("post", "runs/1/notes", {"Referer": "http://testserver/t/perf/runs/1/?a=b"}, (302, "/t/perf/runs/1/%3Fa%3Db")),
        ("post", "runs/new/", {}, (302, "/t/perf/runs/new/")),
        ("post", "runs/new/", {"Referer": "https://evil.example/t/perf/"}, (302, "/t/perf/runs/new/")),
    ],
)
def test_signing_in_again_leads_back_to_the_page_and_a_part_of_a_page_stays_away(
    method: str, path: str, headers: dict[str, str], expected: tuple[int, str | None], team: Team
) -> None:
    answer = getattr(Client(headers=headers), method)(f"/t/{team.slug}/{path}")

    assert answer.status_code == expected[0]
    assert answer.headers.get("Location") == (expected[1] and f"/accounts/login/?next={expected[1]}")


@pytest.mark.parametrize("page", PAGES)
def test_another_teams_page_and_one_that_does_not_exist_give_the_same_404(
    page: str, make_run: MakeRun, other_admin: Member, browser_of: BrowserOf
) -> None:
    make_run(throughput_rps=100)
    browser = browser_of(other_admin)

    foreign = browser.get(f"/t/perf/{page}")
    missing = browser.get(f"/t/nobody/{page}")

    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content


@pytest.mark.parametrize(
    "page", ["runs/{}/", "runs/{}/samples", "runs/{}/log", "runs/{}/events", "compare/?runs={0},{0}"]
)
def test_a_run_is_not_found_under_the_members_own_team_either(
    page: str, make_run: MakeRun, other_admin: Member, browser_of: BrowserOf
) -> None:
    run = make_run(throughput_rps=100)

    assert browser_of(other_admin).get("/t/others/" + page.format(run.number)).status_code == 404


@pytest.mark.parametrize("action", ["runs/{}/cancel", "runs/{}/rerun"])
def test_a_viewer_may_look_but_not_act(
    action: str, make_run: MakeRun, team: Team, make_member: MakeMember, browser_of: BrowserOf
) -> None:
    run = make_run()
    browser = browser_of(make_member(team, Role.VIEWER))

    page = browser.get(f"/t/perf/runs/{run.number}/")
    refused = browser.post("/t/perf/" + action.format(run.number))

    assert page.status_code == 200
    assert b"New run" not in page.content
    assert b"/cancel" not in page.content
    assert refused.status_code == 403
    assert b"launcher" in refused.content
    assert Run.objects.count() == 1


def test_running_again_needs_a_grant_for_the_hosts(
    make_run: MakeRun, team: Team, make_member: MakeMember, browser_of: BrowserOf
) -> None:
    run = make_run(throughput_rps=100)
    browser = browser_of(make_member(team, Role.LAUNCHER))

    answer = browser.post(f"/t/perf/runs/{run.number}/rerun")

    assert answer.status_code == 403
    assert b"sut-1" in answer.content


def test_the_start_page_opens_the_team_seen_last(admin: Member, make_member: MakeMember, browser: Client) -> None:
    second = Team.objects.create(slug="second", name="Second")
    Member.objects.create(team=second, user=admin.user, role=Role.VIEWER)

    first_visit = browser.get("/")
    browser.get("/t/second/")

    assert first_visit.headers["Location"] == "/t/perf/"
    assert browser.get("/").headers["Location"] == "/t/second/"


def test_a_user_without_a_team_is_told_so(other_admin: Member, browser_of: BrowserOf) -> None:
    browser = browser_of(other_admin)
    other_admin.delete()

    answer = browser.get("/")

    assert answer.status_code == 200
    assert b"No team yet" in answer.content
