"""Templates of links to other tools: written for a team and for a host, filled in for a run, refused with a reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from agents.events import LoadStarted
from experiments.models import AuditEntry, Host, Member, Role, Run, Team
from tests.experiments.api.conftest import ApiClient, MakeApi, api, make_api  # noqa: F401 - fixtures
from tests.experiments.conftest import MakeMember
from tests.frontend.conftest import MakeRun

AT = datetime(2026, 11, 20, 21, 4, 5, 250_000, tzinfo=UTC)
MEASURED = LoadStarted(0, True, 180, (AT + timedelta(seconds=60)).timestamp())
GRAFANA = "https://g.example.com/d/x?from={from_ms}&to={to_ms}&var-host={host}"
WHOLE = "https://k.example.com/a#(from:'{measured_from_iso}',to:'{measured_to_s}')/{run}/{team}/{recipe}"


@pytest.fixture
def run(make_run: MakeRun) -> Run:
    return make_run(throughput_rps=1.0, started_at=AT, finished_at=AT + timedelta(seconds=300), events=(MEASURED,))


def test_links_of_a_team_and_a_host_stand_on_the_runs_page_and_in_its_answer(
    browser: Client,
    api: ApiClient,  # noqa: F811
    run: Run,
) -> None:
    text = f"Grafana = {GRAFANA}\n\n Kibana={WHOLE} "
    saved = browser.post("/t/perf/settings/team/", {"name": "Perf & Co", "link_templates": text})
    assert saved.status_code == 302
    Host.objects.filter(name="sut-1").update(name="süt 1")
    own = [{"name": "netdata", "url": "http://10.0.0.5:19999/?after={measured_from_s}&role={role}"}]
    changed = api.send("PATCH", f"/hosts/{Host.objects.get(roles='sut').name}", {"link_templates": own})
    assert changed.json()["link_templates"] == own
    start_ms = int(AT.timestamp() * 1000)
    window = f"from={start_ms}&to={start_ms + 300_000}"
    measured = f"(from:'2026-11-20T21%3A05%3A05.250Z',to:'{start_ms // 1000 + 240}')"
    expected = [
        ("Grafana", f"https://g.example.com/d/x?{window}&var-host=s%C3%BCt%201", "süt 1"),
        ("Grafana", f"https://g.example.com/d/x?{window}&var-host=driver-1", "driver-1"),
        ("Kibana", f"https://k.example.com/a#{measured}/{run.number}/perf/limits", ""),
        ("netdata", f"http://10.0.0.5:19999/?after={start_ms // 1000 + 60}&role=sut", "süt 1"),
    ]
    answer = api.get(f"/runs/{run.number}").json()["links"]
    assert [(one["name"], one["url"], one["host"]) for one in answer] == expected
    page = unescape(browser.get(f"/t/perf/runs/{run.number}/").content.decode())
    for _, url, _ in expected:
        assert f'href="{url}" target="_blank" rel="noopener noreferrer"' in page
    form = unescape(browser.get("/t/perf/settings/team/").content.decode())
    assert f"Grafana = {GRAFANA}\nKibana = {WHOLE}" in form
    assert AuditEntry.objects.filter(action="team.links").count() == 1


def test_a_link_whose_placeholder_has_no_value_is_left_out(api: ApiClient, make_run: MakeRun) -> None:  # noqa: F811
    templates = [
        {"name": "measured", "url": "https://a.example.com/{measured_from_ms}"},
        {"name": "experiment", "url": "https://a.example.com/{experiment}"},
        {"name": "run", "url": "https://a.example.com/{run}"},
    ]
    assert api.send("PATCH", "/team", {"link_templates": templates}).json()["link_templates"] == templates
    failed = make_run(state="finished", started_at=AT, finished_at=AT, events=())
    queued = make_run(events=())
    shown = api.get(f"/runs/{failed.number}").json()["links"]
    assert [one["name"] for one in shown] == ["run"]
    assert api.get(f"/runs/{queued.number}").json()["links"] == []


@pytest.mark.parametrize(
    "url, why",
    [
        ("javascript:alert(1)//{run}", "begins with https:// or http://"),
        ("ftp://files.example.com/{run}", "begins with https:// or http://"),
        ("https:///nowhere", "begins with https:// or http://"),
        ("https://ada:secret@g.example.com/", "without a user and a password"),
        ("https://{host}.example.com/", "behind the name of the host"),
        ("https://g.example.com/{hots}", "no placeholder {hots}. These may stand there: {from_ms}, {to_ms}"),
        ("https://g.example.com/{}", "no placeholder {}. These may stand there: {from_ms}"),
        ('https://g.example.com/?left={"a":{from_ms}', "%7B or %7D"),
        ("https://g.example.com/a b", "no blank"),
        ("https://[::1/", "no URL"),
        ("https://g.example.com:99999/", "no URL"),
    ],
)
def test_a_template_that_is_none_is_refused_at_its_field_and_nothing_is_stored(
    browser: Client,
    api: ApiClient,  # noqa: F811
    stock: dict[str, Any],
    url: str,
    why: str,
) -> None:
    for path in ("/team", "/hosts/sut-1"):
        answer = api.send("PATCH", path, {"link_templates": [{"name": "x", "url": url}]})
        assert answer.status_code == 422
        assert answer.json()["field"] == "link_templates"
        assert why in answer.json()["detail"]
    typed = browser.post("/t/perf/settings/team/", {"name": "P", "link_templates": f"x = {url}"})
    assert typed.status_code == 422
    assert why in unescape(typed.content.decode())
    edited = browser.post(
        f"/t/perf/hosts/{stock['sut'].pk}/edit/",
        {"name": "sut-1", "address": "127.0.0.1", "user": "bench", "roles": "sut", "link_templates": f"x = {url}"},
    )
    assert why in unescape(edited.content.decode())
    assert Team.objects.get(slug="perf").link_templates == Host.objects.get(name="sut-1").link_templates == []


@pytest.mark.parametrize(
    "templates, why",
    [
        ([{"name": "a", "url": "https://a.example.com"}] * 2, "Two links are named a"),
        ([{"name": "a=b", "url": "https://a.example.com"}], "printable characters without ="),
    ],
)
def test_names_of_links_are_told_apart(api: ApiClient, templates: Any, why: str) -> None:  # noqa: F811
    answer = api.send("PATCH", "/team", {"link_templates": templates})
    assert (answer.status_code, why in answer.json()["detail"]) == (422, True)


def test_editors_write_those_of_hosts_and_only_admins_those_of_the_team(
    make_api: MakeApi,  # noqa: F811
    make_member: MakeMember,
    admin: Member,
    stock: dict[str, Any],
) -> None:
    body = {"link_templates": [{"name": "a", "url": "https://a.example.com/{host}"}]}
    editor = make_api(make_member(admin.team, Role.EDITOR))
    launcher = make_api(make_member(admin.team, Role.LAUNCHER))
    assert editor.send("PATCH", "/hosts/sut-1", body).status_code == 200
    assert editor.send("PATCH", "/team", body).status_code == 403
    assert launcher.send("PATCH", "/hosts/sut-1", body).status_code == 403
