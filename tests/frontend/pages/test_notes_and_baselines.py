"""Notes in Markdown, tags, the archive, and runs with a name that others are held against."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.utils import timezone

from experiments.judging.alerts.trends import rebuild
from experiments.judging.comparing.changes import throughput_changes
from experiments.models import AuditEntry, Experiment, Member, PinnedBaseline, Role, Run
from experiments.registry.notes.notes_html import notes_html
from experiments.registry.runs.baselines import pin
from experiments.registry.runs.series import extend_series
from frontend.shared.baseline import baseline_of
from tests.experiments.conftest import MakeMember, admin, make_member, other_admin, stock, team
from tests.frontend.conftest import MakeRun, make_run
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "make_run", "other_admin", "stock", "team"]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** `code`", "<p><strong>bold</strong> <code>code</code></p>"),
        ("one\ntwo", "<p>one<br />\ntwo</p>"),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ('<a href="x" onclick="y">z</a>', "<p>&lt;a href=&quot;x&quot; onclick=&quot;y&quot;&gt;z&lt;/a&gt;</p>"),
        ("[x](https://a.org)", '<p><a href="https://a.org" rel="nofollow noopener noreferrer">x</a></p>'),
        ("<https://a.org>", '<p><a href="https://a.org" rel="nofollow noopener noreferrer">https://a.org</a></p>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](JaVaScRiPt:alert(1))", "<p>[x](JaVaScRiPt:alert(1))</p>"),
        ("[x](&#106;avascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](data:text/html,y)", "<p>[x](data:text/html,y)</p>"),
        (
            "| a | b |\n| :-- | --: |",
            '<table>\n<thead>\n<tr>\n<th>a</th>\n<th class="num">b</th>\n</tr>\n</thead>\n</table>',
        ),
        ("[x](vbscript:y)", "<p>[x](vbscript:y)</p>"),
        (
            '[x](https://a.org "t\\" onclick=y")',
            '<p><a href="https://a.org" title="t&quot; onclick=y" rel="nofollow noopener noreferrer">x</a></p>',
        ),
        ("![x](https://a.org/p.png)", '<p>!<a href="https://a.org/p.png" rel="nofollow noopener noreferrer">x</a></p>'),
    ],
)
def test_notes_are_markdown_and_never_anybodys_html(text: str, html: str) -> None:
    assert notes_html(text).strip() == html


def test_notes_and_tags_are_written_on_the_page_and_audited(admin: Member, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)
    client, url = signed_in(admin), address("run_notes", admin.team, run.number)
    client.post(url, {"notes": "**slow** disk", "tags": "release, odd"})
    client.post(url, {"notes": "**slow** disk", "tags": "release, odd"})  # nothing new
    page = client.get(address("run", admin.team, run.number)).content.decode()
    assert "<strong>slow</strong> disk" in page
    assert "?tag=release" in page
    assert "by ada" in page
    written = AuditEntry.objects.filter(subject=f"run #{run.number}").exclude(action="run.launch").order_by("pk")
    assert [(entry.action, entry.after) for entry in written] == [
        ("notes.write", {"notes": "**slow** disk"}),
        ("run.tags", {"tags": ["release", "odd"]}),
    ]
    client.post(url, {"notes": "x" * 10_001, "tags": ""})
    run.refresh_from_db()
    assert (run.notes, run.tags) == ("**slow** disk", ["release", "odd"])
    other = make_run(throughput_rps=1000.0)
    compared = client.get(f"{address('compare', admin.team)}?runs={run.number},{other.number}").content.decode()
    assert "<strong>slow</strong> disk" in compared
    listed = client.get(f"{address('runs', admin.team)}?columns=notes").content.decode()
    assert ">slow disk</a>" in listed


def test_an_experiment_has_notes_too(admin: Member, stock: dict[str, Any]) -> None:
    experiment = Experiment.objects.create(team=admin.team, name="Threads", workload=stock["workload"])
    client = signed_in(admin)
    client.post(address("experiment_notes", admin.team, experiment.pk), {"notes": "- one\n- two"})
    assert "<li>one</li>" in client.get(address("experiment", admin.team, experiment.pk)).content.decode()


def test_writing_needs_a_launcher_and_putting_away_or_pinning_an_editor(
    admin: Member, make_run: MakeRun, make_member: MakeMember
) -> None:
    number = make_run(throughput_rps=1000.0).number

    def asked(role: Role, name: str) -> int:
        client = signed_in(make_member(admin.team, role))
        return client.post(address(name, admin.team, number), {"notes": "x", "name": "x"}).status_code

    assert [asked(Role.VIEWER, name) for name in ("run_notes", "archive_run", "pin_baseline")] == [403] * 3
    assert [asked(Role.LAUNCHER, name) for name in ("run_notes", "archive_run", "pin_baseline")] == [302, 403, 403]
    assert [asked(Role.EDITOR, name) for name in ("pin_baseline", "archive_run")] == [302, 302]
    assert Run.objects.get(number=number).archived
    asked(Role.EDITOR, "archive_run")
    assert not Run.objects.get(number=number).archived


def test_every_run_of_a_series_is_held_against_its_pinned_baseline(admin: Member, make_run: MakeRun) -> None:
    good, earlier, run = (make_run(throughput_rps=figure) for figure in (1000.0, 900.0, 1100.0))
    in_trends(run)
    client = signed_in(admin)
    assert (before := baseline_of(run)) is not None
    assert before.label == f"previous run #{earlier.number}"
    client.post(address("pin_baseline", admin.team, good.number), {"name": "release 11.0", "for_series": "on"})
    now = baseline_of(run)
    assert now is not None
    assert (now.label, now.numbers) == (f"release 11.0 (#{good.number})", (good.number,))
    assert baseline_of(good) is None
    assert "held against" in client.get(address("run", admin.team, good.number)).content.decode()
    assert changes_of(admin) == {
        earlier.number: (-10.0, "pinned", f"release 11.0 (#{good.number})"),
        run.number: (10.0, "pinned", f"release 11.0 (#{good.number})"),
    }
    listed = client.get(address("runs", admin.team) + "?columns=change").content.decode()
    assert re.search(r"\+10\.0", listed)
    csv = b"".join(client.get(address("runs_csv", admin.team) + "?columns=change&sort=number")).decode()
    assert [line.split(",")[1][:5] for line in csv.splitlines()[1:]] == ["", "-0.09", "0.100"]


def changes_of(member: Member) -> dict[int, tuple[float, str, str]]:
    """Run -> its change in percent, on what it is based, and what it is held against."""
    runs = list(Run.objects.for_team(member.team).with_names().order_by("number"))
    found = throughput_changes(member.team, runs)
    numbers = {run.pk: run.number for run in runs}
    return {numbers[pk]: (round(100 * one.ratio, 6), one.basis, one.against) for pk, one in found.items()}


def in_trends(run: Run) -> None:
    """Put the runs of its series into their trends, as their ends do."""
    rebuild(extend_series(run, application="app", workload="load", tool="wrk 4", latency_basis="service_time"))


def test_without_a_pinned_baseline_a_run_is_held_against_the_previous_one_of_its_trend(
    admin: Member, make_run: MakeRun
) -> None:
    base = make_run(throughput_rps=1000.0)
    assert base.spec is not None
    chosen = base.spec | {"recipe": base.spec["recipe"] | {"parameters": {"nofile": 4096}}}
    not_alike: list[dict[str, Any]] = [
        {"validity": "invalid"},
        {"archived": True},
        {"fingerprint": "a" * 64},
        {"trashed_at": timezone.now()},
    ]
    for fields in not_alike:
        in_trends(make_run(throughput_rps=500.0, **fields))
    other = make_run(throughput_rps=500.0, spec=chosen)
    run = make_run(throughput_rps=1100.0)
    alike = make_run(throughput_rps=600.0, spec=chosen)
    in_trends(run)
    assert changes_of(admin) == {
        run.number: (10.0, "previous", f"previous run #{base.number}"),
        alike.number: (20.0, "previous", f"previous run #{other.number}"),
    }
    for one in (run, alike):
        on_page = baseline_of(one)
        assert on_page is not None
        assert on_page.label == changes_of(admin)[one.number][2]
    client, against = signed_in(admin), f"previous run #{base.number}"
    assert against in client.get(address("runs", admin.team) + "?columns=change").content.decode()
    csv = b"".join(client.get(address("runs_csv", admin.team) + "?columns=change&sort=-number")).decode()
    assert csv.splitlines()[2].split(",")[2] == against


def test_a_name_moves_with_the_next_run_that_gets_it(admin: Member, make_run: MakeRun) -> None:
    first, second = (make_run(throughput_rps=figure) for figure in (1000.0, 900.0))
    pin(admin, first, "release", for_series=True)
    pin(admin, second, "other", for_series=True)  # a series has one
    assert dict(PinnedBaseline.objects.values_list("name", "fingerprint")) == {
        "release": "",
        "other": second.fingerprint,
    }
    pin(admin, second, "release")
    assert set(PinnedBaseline.objects.values_list("run__number", flat=True)) == {second.number}
    moved = AuditEntry.objects.filter(action="baseline.pin").last()
    assert moved is not None
    assert (moved.before, moved.after) == (
        {"run": first.number, "for_series": False},
        {"run": second.number, "for_series": False},
    )


def test_only_a_run_that_counts_can_be_a_baseline(admin: Member, make_run: MakeRun) -> None:
    bad = make_run(throughput_rps=1000.0, validity="invalid")
    client = signed_in(admin)
    client.post(address("pin_baseline", admin.team, bad.number), {"name": "release"})
    good = make_run(throughput_rps=1000.0)
    client.post(address("pin_baseline", admin.team, good.number), {"name": " "})
    assert not PinnedBaseline.objects.exists()


def test_compare_takes_a_baseline_by_its_name(admin: Member, make_run: MakeRun) -> None:
    first, second, third = (make_run(throughput_rps=figure) for figure in (1000.0, 900.0, 800.0))
    pin(admin, third, "release 11.0")
    client, url = signed_in(admin), address("compare", admin.team)
    page = client.get(f"{url}?runs={first.number}&runs={second.number}&baseline=release 11.0")
    assert [run.number for run in page.context["runs"]] == [third.number, first.number, second.number]
    offered = client.get(f"{url}?runs={first.number},{second.number}").content.decode()
    assert f'href="?runs={third.number},{first.number},{second.number}"' in offered
    assert client.get(f"{url}?runs={first.number}&baseline=none").status_code in (400, 404)


def test_the_list_of_baselines_unpins_them(admin: Member, other_admin: Member, make_run: MakeRun) -> None:
    pinned = pin(admin, make_run(throughput_rps=1000.0), "release 11.0")
    client, url = signed_in(admin), address("baselines", admin.team)
    assert "release 11.0" in client.get(url).content.decode()
    assert signed_in(other_admin).get(address("baselines", other_admin.team)).status_code == 200
    client.post(address("unpin_baseline", admin.team, pinned.pk))
    assert "No run is pinned" in client.get(url).content.decode()
