"""Notes of people on charts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from experiments.models import Annotation, AuditEntry, Member, Role, Series, Team
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.notes import chart_notes
from tests.experiments.api.conftest import ApiClient, api, make_api
from tests.experiments.conftest import MakeMember
from tests.frontend.conftest import FINGERPRINT, MakeRun, browser, browser_of, make_run

__all__ = ["api", "browser", "browser_of", "make_api", "make_run"]  # fixtures of the pages and of the API

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def series(admin: Member) -> Series:
    return Series.objects.create(
        team=admin.team, fingerprint=FINGERPRINT, application="a", workload="w", tool="wrk 4.2", latency_basis="x"
    )


def test_a_note_is_made_changed_and_deleted_and_each_is_in_the_audit_trail(admin: Member, series: Series) -> None:
    note = chart_notes.annotate(admin, series, AT, "  new\nswitch \0 ")
    chart_notes.change(admin, note, text="new switch in rack 2")
    chart_notes.remove(admin, note)

    assert not Annotation.objects.exists()
    entries = AuditEntry.objects.filter(action__startswith="annotation.").order_by("id")
    assert [(e.action, (e.before or {}).get("text"), (e.after or {}).get("text")) for e in entries] == [
        ("annotation.create", None, "new switch"),
        ("annotation.change", "new switch", "new switch in rack 2"),
        ("annotation.delete", "new switch in rack 2", None),
    ]


@pytest.mark.parametrize(
    "at, text", [(AT, " "), (AT, "x" * 201), (datetime(1999, 1, 1, tzinfo=UTC), "x"), (AT + timedelta(days=9999), "x")]
)
def test_a_note_without_words_or_from_no_time_is_refused(
    admin: Member, series: Series, at: datetime, text: str
) -> None:
    with pytest.raises(RequestError):
        chart_notes.annotate(admin, series, at, text)


def test_others_change_a_note_only_as_editors(team: Team, make_member: MakeMember, series: Series) -> None:
    note = chart_notes.annotate(make_member(team, Role.LAUNCHER), series, AT, "mine")

    for role in (Role.VIEWER, Role.LAUNCHER):
        with pytest.raises(Forbidden):
            chart_notes.change(make_member(team, role), note, text="x")
    chart_notes.change(make_member(team, Role.EDITOR), note, text="ours")
    assert note.text == "ours"


def test_the_trend_shows_its_notes_and_the_page_adds_them(browser: Client, make_run: MakeRun, series: Series) -> None:
    run = make_run(throughput_rps=1000.0)

    added = browser.post(
        f"/t/perf/trends/{series.pk}/annotate",
        {"run": f"#{run.number}", "text": "<b>kernel</b>", "back": f"/t/perf/trends/?series={series.pk}"},
    )
    points = browser.get(f"/t/perf/trends/points?series={series.pk}&metric=throughput_rps").json()
    page = browser.get(added["Location"]).content.decode()

    assert run.finished_at is not None
    assert points["notes"] == [{"at": run.finished_at.isoformat(), "text": "<b>kernel</b>", "author": "ada"}]
    assert "&lt;b&gt;kernel" in page


def test_a_page_sends_nobody_to_another_site(browser: Client, series: Series) -> None:
    answer = browser.post(
        f"/t/perf/trends/{series.pk}/annotate", {"at": "2026-03-01", "text": "x", "back": "https://example.org/"}
    )

    assert answer["Location"] == "/t/perf/trends/"
    assert Annotation.objects.count() == 1


def test_the_api_makes_lists_changes_and_deletes_notes(api: ApiClient, make_run: MakeRun, series: Series) -> None:
    run = make_run(throughput_rps=1000.0, measured_at=timezone.now())

    on_run = api.post("/annotations", {"run": run.number, "text": "fan failed"}).json()
    on_trend = api.post("/annotations", {"series": FINGERPRINT, "run": run.number, "text": "new kernel"}).json()
    changed = api.send("PATCH", f"/annotations/{on_run['id']}", {"text": "fan replaced"}).json()

    assert (on_run["run"], on_run["series"], on_trend["series"], on_trend["run"]) == (
        run.number, None, FINGERPRINT, None,
    )  # fmt: skip
    assert changed["text"] == "fan replaced"
    assert [n["text"] for n in api.get(f"/annotations?run={run.number}").json()] == ["fan replaced"]
    assert [n["text"] for n in api.get(f"/annotations?series={FINGERPRINT}").json()] == ["new kernel"]
    assert api.send("DELETE", f"/annotations/{on_run['id']}").status_code == 200
    assert [n["text"] for n in api.get("/annotations").json()] == ["new kernel"]
    assert api.post("/annotations", {"text": "of nothing"}).status_code == 422
