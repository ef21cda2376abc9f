"""Sharing in the browser: somebody with a link and no account, and the team that gave it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from experiments.models import Experiment, Member, Role, Run, ShareLink
from experiments.telling.sharing.links import NewLink, revoke_link, share
from experiments.telling.sharing.sheet_files import CONTENT_TYPES
from frontend.pages.shares import public
from frontend.urls import urlpatterns
from tests.experiments.conftest import MakeMember
from tests.experiments.telling.test_sharing import Kind, runs, subject_of
from tests.frontend.conftest import MakeRun

__all__ = ["runs"]  # a fixture of the use cases

FILES = ("", "embed/", "badge.svg", "chart.svg", "chart.png", "report.md", "report.csv", "report.pdf")


@pytest.fixture(autouse=True)
def _fresh_counters(db: None) -> None:
    cache.clear()


@pytest.fixture
def made(admin: Member, runs: list[Run]) -> NewLink:
    return share(admin, subject_of("experiment", runs))


def address(made: NewLink, file: str = "") -> str:
    return f"/s/{made.token}/{file}"


def _page(kind: str, admin: Member, found: list[Run]) -> str:
    made = share(admin, subject_of(kind, found))
    answer = Client().get(address(made))
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize("kind", Kind.values)
def test_a_page_says_what_it_is_and_leads_nowhere(kind: str, admin: Member, runs: list[Run]) -> None:
    text = _page(kind, admin, runs)
    link = ShareLink.objects.get()
    assert link.sheet["title"] in text
    assert text.count('property="og:title"') == 1
    assert re.search(r'property="og:image" content="http://testserver/s/[^"]+/chart.png"', text)
    assert '<meta name="robots" content="noindex' in text
    assert "<script" not in text
    assert "<nav" not in text
    assert " style=" not in text
    assert "/t/perf" not in text
    assert admin.user.username not in re.findall(r"[a-z]+", text)
    links = re.findall(r'href="([^"]+)"', text)
    files = {f"report.{form}" for form in CONTENT_TYPES} | {"chart.png"}
    assert {href for href in links if not href.startswith("/static/")} == files


@pytest.mark.parametrize("file", FILES)
def test_every_file_is_guarded_and_sets_no_cookie(file: str, made: NewLink) -> None:
    answer = Client().get(address(made, file))
    assert answer.status_code == 200
    assert answer.headers["X-Robots-Tag"].startswith("noindex")
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert not answer.cookies
    assert ("frame-ancestors *" in policy) is (file == "embed/")
    assert ("X-Frame-Options" in answer.headers) is (file != "embed/")


def test_the_files_are_what_their_names_say(made: NewLink) -> None:
    client = Client()
    content = {file: client.get(address(made, file)) for file in FILES}
    assert content["chart.png"].content.startswith(b"\x89PNG")
    for name in ("badge.svg", "chart.svg"):
        assert content[name].headers["Content-Type"] == "image/svg+xml"
        assert content[name].content.startswith(b"<svg")
    assert content["report.pdf"].content.startswith(b"%PDF-")
    assert content["report.md"].content.startswith(b"# Is it faster?")
    assert b"throughput_rps.svg" in content["report.md"].content
    named = client.get(address(made, "throughput_rps.png"))
    assert named.content == content["chart.png"].content
    assert client.get(address(made, "nothing.svg")).status_code == 404


@pytest.mark.parametrize("file", ["", "badge.svg", "chart.png"])
def test_what_is_known_is_not_sent_again(file: str, made: NewLink) -> None:
    client = Client()
    first = client.get(address(made, file))
    again = client.get(address(made, file), headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["Content-Security-Policy"] == first.headers["Content-Security-Policy"]


@pytest.mark.parametrize("end", ["unknown", "revoked", "expired"])
@pytest.mark.parametrize("file", FILES)
def test_a_link_that_does_not_work_says_the_same_whatever_the_reason(
    file: str, end: str, made: NewLink, admin: Member
) -> None:
    if end == "revoked":
        revoke_link(admin, made.link.pk)
    if end == "expired":
        ShareLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    token = "x" * 32 if end == "unknown" else made.token
    answer = Client().get(f"/s/{token}/{file}")
    nothing = Client().get(f"/s/short/{file}")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (404, "no-store")
    assert answer.content == nothing.content
    assert b"Is it faster?" not in answer.content


def test_a_name_breaks_out_of_nothing(admin: Member, runs: list[Run]) -> None:
    name = "</text><script>alert(1)</script>\"'\x1b[31m&amp;"
    Experiment.objects.update(name=name)
    made, client = share(admin, subject_of("experiment", runs)), Client()
    for file in ("", "embed/", "badge.svg", "chart.svg"):
        content = client.get(address(made, file)).content.decode()
        assert "<script" not in content
        assert "\x1b" not in content
    assert client.get(address(made, "chart.png")).content.startswith(b"\x89PNG")
    assert client.get(address(made, "report.pdf")).content.startswith(b"%PDF-")
    assert "\\<script\\>" in client.get(address(made, "report.md")).content.decode()


@pytest.mark.parametrize("form", CONTENT_TYPES)
def test_the_team_has_the_report_of_a_run_and_of_an_experiment_as_files(
    form: str, browser: Client, runs: list[Run]
) -> None:
    pages = [
        f"/t/perf/runs/{runs[0].number}/report.{form}",
        f"/t/perf/experiments/{runs[0].experiment_id}/report.{form}",
    ]
    for page in pages:
        answer = browser.get(page)
        assert answer.headers["Content-Type"] == CONTENT_TYPES[form]
        assert re.search(rf'filename="(run|experiment)-\d+\.{form}"', answer.headers["Content-Disposition"])
        assert answer.content.startswith(b"%PDF-") is (form == "pdf")
        assert Client().get(page).status_code == 302


def test_a_run_that_is_not_over_has_no_report(browser: Client, runs: list[Run]) -> None:
    Run.objects.update(state="measuring")
    answer = browser.get(f"/t/perf/runs/{runs[0].number}/report.pdf", follow=True)
    assert answer.redirect_chain == [(f"/t/perf/runs/{runs[0].number}/", 302)]
    assert b"is not finished; it has a report" in answer.content


def test_openings_are_counted_and_pictures_are_not(made: NewLink) -> None:
    client = Client()
    for file in FILES:
        client.get(address(made, file))
    client.head(address(made))
    link = ShareLink.objects.get()
    assert link.opened_count == 2  # the page and the frame
    assert link.last_opened_at is not None


def test_an_address_that_asks_too_often_has_to_wait(made: NewLink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public, "MOST_PER_MINUTE", 3)
    monkeypatch.setattr(public, "_minute", lambda: 1)
    client = Client()
    assert [client.get(address(made, "badge.svg")).status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    assert client.get(address(made)).headers["Retry-After"] == "60"


def test_nothing_else_of_the_team_opens_with_a_link(made: NewLink) -> None:
    client = Client()
    client.get(address(made))
    for pattern in urlpatterns:
        if "team_slug" in str(pattern.pattern) and not set(pattern.pattern.converters) - {"team_slug"}:
            answer = client.get(reverse(str(pattern.name), args=["perf"]))
            assert answer.status_code in (302, 405), pattern.name
    assert client.post(address(made)).status_code == 405
    assert client.get("/api/v1/runs", headers={"Authorization": f"Bearer {made.token}"}).status_code == 401


def test_robots_may_read_shared_pages_alone(client: Client) -> None:
    lines = client.get("/robots.txt").content.decode().split("\n")
    assert lines[:4] == ["User-agent: *", "Allow: /s/", "Allow: /static/", "Disallow: /"]


@pytest.mark.parametrize("kind", Kind.values)
def test_an_editor_sees_what_is_shared_and_gets_the_link_once(
    kind: str,
    admin: Member,
    runs: list[Run],
    browser: Client,
) -> None:
    subject = subject_of(kind, runs)
    query: dict[str, Any] = {"kind": kind, "runs": ",".join(map(str, subject.runs))}
    query |= {"experiment": subject.experiment_id or "", "series": subject.series_id or ""}
    query |= {kind: subject.inquiry_id} if subject.inquiry_id else {}
    page = f"{reverse('new_share', args=['perf'])}?{'&'.join(f'{name}={value}' for name, value in query.items())}"
    preview = browser.get(page)
    assert preview.status_code == 200
    assert not ShareLink.objects.exists()
    answer = browser.post(page, {"days": "7"})
    found = re.search(r"http://testserver(/s/[\w-]{32}/)", answer.content.decode())
    assert found is not None
    assert Client().get(found[1]).status_code == 200
    listed = browser.get(reverse("shares", args=["perf"])).content.decode()
    assert ShareLink.objects.get().subject in listed
    assert found[1] not in listed
    browser.post(reverse("revoke_share", args=["perf", ShareLink.objects.get().pk]))
    assert Client().get(found[1]).status_code == 404


@pytest.mark.parametrize(
    "query, status",
    [
        ("", 422),
        ("kind=nothing", 422),
        ("kind=run", 422),
        ("kind=run&runs=x", 422),
        ("kind=run&runs=99", 404),
        ("kind=run&runs=99999999999999", 422),
        ("kind=comparison&runs=1", 422),
        ("kind=experiment&experiment=999", 404),
        ("kind=trend&series=999", 404),
    ],
)
def test_what_cannot_be_shared_is_said(query: str, status: int, browser: Client, make_run: MakeRun) -> None:
    make_run(throughput_rps=10.0)
    answer = browser.get(f"{reverse('new_share', args=['perf'])}?{query}")
    assert answer.status_code == status


def test_a_launcher_sees_the_links_and_cannot_share(
    admin: Member,
    made: NewLink,
    make_member: MakeMember,
    browser_of: Callable[[Member], Client],
    runs: list[Run],
) -> None:
    launcher = browser_of(make_member(admin.team, Role.LAUNCHER))
    number = runs[0].number
    assert b"Is it faster?" in launcher.get(reverse("shares", args=["perf"])).content
    assert b"Share</a>" not in launcher.get(reverse("run", args=["perf", number])).content
    assert launcher.get(f"{reverse('new_share', args=['perf'])}?kind=run&runs={number}").status_code == 403
    assert launcher.post(reverse("revoke_share", args=["perf", made.link.pk])).status_code == 403


def test_the_button_is_on_every_page_that_can_be_shared(browser: Client, runs: list[Run]) -> None:
    first, second = (run.number for run in runs)
    pages = [
        reverse("run", args=["perf", first]),
        f"{reverse('compare', args=['perf'])}?runs={first},{second}",
        reverse("experiment", args=["perf", runs[0].experiment_id]),
        reverse("trends", args=["perf"]),
        reverse("scaling", args=["perf", subject_of("scaling", runs).experiment_id]),
        reverse("bisection", args=["perf", subject_of("bisection", runs).inquiry_id]),
    ]
    for page in pages:
        assert b"/t/perf/share/?kind=" in browser.get(page).content, page
