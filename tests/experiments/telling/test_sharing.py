"""What a share link shows: frozen, without what is the team's own, for as long as it lives."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from experiments.models import (
    Alert,
    AuditEntry,
    Bisection,
    CapacitySearch,
    Experiment,
    Host,
    Member,
    Role,
    Run,
    Series,
    ShareLink,
    Trend,
    Variant,
)
from experiments.registry.errors import Conflict, Forbidden, NotFound, RequestError
from experiments.telling.reports.plots import CurvePlot
from experiments.telling.sharing.links import MAX_DAYS, live_link, revoke_link, share, sheet_of
from experiments.telling.sharing.pdf import sheet_pdf
from experiments.telling.sharing.pictures import badge_of, picture_of, png
from experiments.telling.sharing.sheet import Sheet, Table
from experiments.telling.sharing.subjects import Subject, freeze
from experiments.telling.sharing.texts import sheet_csv, sheet_markdown
from tests.experiments.conftest import MakeMember
from tests.experiments.finished import finish_next, report, whole_run
from tests.frontend.conftest import MakeRun, make_run

__all__ = ["make_run"]  # a fixture of the pages

Kind = ShareLink.Kind


def subject_of(kind: str, runs: list[Run]) -> Subject:
    """A subject of each kind that speaks of these two runs."""
    numbers = tuple(run.number for run in runs)
    if kind == "run":
        return Subject(Kind.RUN, numbers[:1])
    if kind == "comparison":
        return Subject(Kind.COMPARISON, numbers)
    if kind == "experiment":
        return Subject(Kind.EXPERIMENT, experiment_id=runs[0].experiment_id)
    if kind == "scaling":
        for cpus, run in enumerate(runs, start=1):
            run.metrics["sut_cpus"] = cpus
            run.save(update_fields=["metrics"])
        return Subject(Kind.SCALING, experiment_id=runs[0].experiment_id)
    if kind in ("search", "bisection"):
        return Subject(Kind(kind), inquiry_id=(search_of if kind == "search" else bisection_of)(runs).pk)
    return Subject(Kind.TREND, series_id=Series.objects.get(team=runs[0].team).pk)


def _set_up(run: Run) -> dict[str, Any]:
    names = ("team", "application", "recipe", "workload", "sut", "drivers")
    return {name: getattr(run, name) for name in names}


def search_of(runs: list[Run]) -> CapacitySearch:
    """A finished search whose trials are these runs: the first passed, the last failed."""
    search = CapacitySearch.objects.create(
        **_set_up(runs[0]), name="How much?", state="finished", sentence="It sustains 1,000 requests/s.", low_rps=1000,
        high_rps=1100, objective_metric="latency_p99_ms", objective_ms=50, start_low_rps=500, start_high_rps=2000,
    )  # fmt: skip
    for position, (run, result) in enumerate(zip(runs, ("pass", "fail"), strict=True)):
        run.metrics["latency_p99_ms"] = 10.0 * (position + 1)
        run.save(update_fields=["metrics"])
        search.trials.create(position=position, rate_rps=1000 + 100 * position, phase="bisect", run=run, result=result)
    return search


def bisection_of(runs: list[Run]) -> Bisection:
    """A finished bisection of three commits with the experiment of these runs as its step."""
    bisection = Bisection.objects.create(
        **_set_up(runs[0]), name="Who slowed it?", parameter="commit", candidates=["4f2c9d1", "8a01b33", "c77e012"],
        state="finished", high=2, sentence="c77e012 is the first bad one.",
    )  # fmt: skip
    assert runs[0].experiment is not None
    bisection.steps.create(
        position=0, index=2, experiment=runs[0].experiment, result="bad", sentence="It is slower.",
        estimate_pct=-10.0, ci95_low_pct=-12.0, ci95_high_pct=-8.0,
    )  # fmt: skip
    return bisection


@pytest.fixture
def runs(admin: Member, stock: dict[str, Any], make_run: MakeRun) -> list[Run]:
    """Two finished runs of an experiment with two variants, in one series."""
    made = [make_run(throughput_rps=1000.0), make_run(throughput_rps=1100.0)]
    experiment = Experiment.objects.create(
        team=admin.team, name="Is it faster?", question="With limits", workload=stock["workload"], state="finished"
    )
    for position, run in enumerate(made):
        parts: dict[str, Any] = {name: getattr(run, name) for name in ("application", "recipe", "sut", "drivers")}
        variant = Variant.objects.create(
            experiment=experiment,
            name=f"variant {position}",
            position=position,
            is_baseline=position == 0,
            **parts,
        )
        run.experiment, run.variant, run.block = experiment, variant, 0
        run.save()
    Series.objects.create(
        team=admin.team, fingerprint=made[0].fingerprint, application="tomcat", workload="home page", tool="wrk 4.2.0",
        latency_basis="service_time", last_run=made[1],
    )  # fmt: skip
    return made


@pytest.mark.parametrize("kind", Kind.values)
def test_what_is_shown_stays_as_it_was_when_it_was_shared(kind: str, admin: Member, runs: list[Run]) -> None:
    made = share(admin, subject_of(kind, runs))
    before = sheet_of(made.link)

    Run.objects.filter(team=admin.team).update(
        metrics={"throughput_rps": 5.0}, validity="invalid", labels={"later": "x"}, failure="later"
    )
    Experiment.objects.update(name="renamed", question="another")
    Series.objects.update(application="renamed")
    Run.objects.filter(team=admin.team).delete()

    found = live_link(made.token)
    assert found is not None
    assert sheet_of(found) == before
    assert "renamed" not in json.dumps(found.sheet)
    assert found.sheet["plots"] or kind == "run"


@pytest.mark.parametrize("kind", Kind.values)
def test_nothing_private_is_in_it(kind: str, admin: Member, runs: list[Run]) -> None:
    Host.objects.filter(name="sut-1").update(address="sut.corp.example.com", name="sut.corp.example.com")
    Host.objects.filter(name="driver-1").update(address="203.0.113.9")
    admin.user.username = admin.user.email = "ada@corp.example.com"
    admin.user.save()
    sentence = "SUT.corp.example.com refused 203.0.113.9 and 10.1.2.3; ask bob@corp.example.com, dbPassword=hunter2"
    for run in runs:
        run.findings = [{"check": "errors", "level": "warn", "sentence": sentence, "evidence": {}, "source": ""}]
        run.notes, run.tags = "a private note", ["private-tag"]
        run.labels = {"commit": "3f2a1c", "by": "bob@corp.example.com", "url": "jdbc.10.1.2.3"}
        run.save()
    frozen = freeze(admin.team, subject_of(kind, runs))
    text = json.dumps(frozen.sheet.model_dump(mode="json"))

    for private in ("corp.example", "203.0.113.9", "10.1.2.3", "hunter2", "private", "127.0.0.1", "/opt/tomcat"):
        assert private not in text, private
    assert "secret tool output" not in text


def test_a_version_is_no_address(admin: Member, runs: list[Run]) -> None:
    run = runs[0]
    run.labels = {"jdk": "17.0.10.1", "tomcat": "11.0.9"}
    run.save()
    text = json.dumps(freeze(admin.team, Subject(Kind.RUN, (run.number,))).sheet.model_dump(mode="json"))
    assert "17.0.10.1" in text
    assert "11.0.9" in text


def test_only_a_digest_of_the_token_is_stored(admin: Member, runs: list[Run]) -> None:
    made = share(admin, Subject(Kind.RUN, (runs[0].number,)))
    assert len(made.token) == 32
    row = ShareLink.objects.values().get()
    assert made.token not in repr(row)
    assert made.token not in repr(list(AuditEntry.objects.values()))
    assert share(admin, Subject(Kind.RUN, (runs[0].number,))).token != made.token


def _expire(link: ShareLink) -> None:
    ShareLink.objects.filter(pk=link.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize("end", ["revoke", "expire", "delete"])
def test_a_link_that_ended_is_not_found(end: str, admin: Member, runs: list[Run]) -> None:
    made = share(admin, Subject(Kind.RUN, (runs[0].number,)))
    assert live_link(made.token) == made.link
    ends: dict[str, Callable[[ShareLink], Any]] = {
        "revoke": lambda link: revoke_link(admin, link.pk),
        "expire": _expire,
        "delete": lambda link: link.delete(),
    }
    ends[end](made.link)
    assert live_link(made.token) is None


@pytest.mark.parametrize("token", ["", "x", "x" * 32, "x" * 33, "../../x", "é" * 32, "x" * 31 + "\0", "x" * 100_000])
def test_what_is_no_token_opens_nothing(db: None, token: str) -> None:
    assert live_link(token) is None


def test_the_default_is_30_days_and_only_admins_share_for_ever(
    admin: Member, make_member: MakeMember, runs: list[Run]
) -> None:
    subject = Subject(Kind.RUN, (runs[0].number,))
    link = share(admin, subject).link
    assert link.expires_at is not None
    assert timedelta(days=29, hours=23) < link.expires_at - timezone.now() <= timedelta(days=30)
    assert share(admin, subject, days=None).link.expires_at is None
    editor = make_member(admin.team, Role.EDITOR)
    assert share(editor, subject, days=MAX_DAYS).link.created_by == editor.user
    with pytest.raises(Forbidden, match="Only an admin"):
        share(editor, subject, days=None)
    for days in (0, MAX_DAYS + 1):
        with pytest.raises(RequestError, match="between 1 and"):
            share(editor, subject, days=days)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LAUNCHER])
def test_below_editor_nobody_shares_or_revokes(
    role: Role, admin: Member, make_member: MakeMember, runs: list[Run]
) -> None:
    member, link = make_member(admin.team, role), share(admin, Subject(Kind.RUN, (runs[0].number,))).link
    with pytest.raises(Forbidden):
        share(member, Subject(Kind.RUN, (runs[0].number,)))
    with pytest.raises(Forbidden):
        revoke_link(member, link.pk)


@pytest.mark.parametrize("kind", Kind.values)
def test_another_team_can_share_and_revoke_nothing(
    kind: str, admin: Member, other_admin: Member, runs: list[Run]
) -> None:
    link = share(admin, Subject(Kind.RUN, (runs[0].number,))).link
    with pytest.raises(NotFound):
        share(other_admin, subject_of(kind, runs))
    with pytest.raises(NotFound):
        revoke_link(other_admin, link.pk)
    assert ShareLink.objects.get() == link


def test_sharing_and_revoking_are_audited(admin: Member, runs: list[Run]) -> None:
    link = share(admin, Subject(Kind.RUN, (runs[0].number,)), days=7).link
    revoke_link(admin, link.pk)
    revoke_link(admin, link.pk)
    found = (
        AuditEntry.objects.filter(action__startswith="share.").order_by("pk").values_list("action", "subject", "after")
    )
    assert list(found) == [
        ("share.create", f"run #{runs[0].number}", {"link": link.pk, "kind": "run", "days": 7}),
        ("share.revoke", f"run #{runs[0].number}", None),
    ]


def test_what_is_not_finished_is_not_shared_yet(admin: Member, make_run: MakeRun, runs: list[Run]) -> None:
    live = make_run()
    with pytest.raises(Conflict, match="not finished"):
        share(admin, Subject(Kind.RUN, (live.number,)))
    with pytest.raises(Conflict, match="not finished"):
        share(admin, Subject(Kind.COMPARISON, (runs[0].number, live.number)))
    Run.objects.filter(team=admin.team).update(validity="invalid")
    with pytest.raises(Conflict, match="No run that counts"):
        share(admin, subject_of("trend", runs))


def test_a_run_that_was_really_recorded_has_its_curves(admin: Member, make_run: MakeRun) -> None:
    queued = make_run(events=())
    run = finish_next(whole_run(report(50_517.0)))
    assert run.number == queued.number
    sheet = freeze(admin.team, Subject(Kind.RUN, (run.number,))).sheet
    assert [plot.name for plot in sheet.plots] == ["cpu"]
    assert "Throughput 50,517 requests/s" in sheet.sentence
    assert sheet.badge_label == f"run #{run.number}"


@pytest.fixture
def sheet(admin: Member, runs: list[Run]) -> Sheet:
    return freeze(admin.team, subject_of("comparison", runs)).sheet


def test_the_pictures_are_what_they_say(sheet: Sheet, admin: Member, runs: list[Run]) -> None:
    from django.template.loader import render_to_string

    trend = freeze(admin.team, subject_of("trend", runs)).sheet
    svg = render_to_string("shares/picture.svg", {"picture": picture_of(trend, trend.plots[0])})
    assert png(svg).startswith(b"\x89PNG\r\n\x1a\n")
    badge = badge_of(sheet)
    assert (badge.label, badge.value) == (f"#{runs[1].number} against #{runs[0].number}", "throughput +10.0 %")


def test_the_texts_say_the_same(sheet: Sheet) -> None:
    markdown, table = sheet_markdown(sheet, url="https://x/s/t/"), sheet_csv(sheet)
    assert "+10.0 %" in markdown
    assert "'+10.0 %" in table  # no formula
    assert "https://x/s/t/" in markdown


def test_a_trend_marks_its_change_points_and_says_the_latest(admin: Member, runs: list[Run]) -> None:
    assert runs[0].finished_at is not None
    assert runs[1].finished_at is not None
    trend = Trend.objects.create(series=Series.objects.get(), recipe="limits", metric="throughput_rps")
    Alert.objects.create(
        team=admin.team, trend=trend, state="confirmed", worse=True, run_before=runs[0], run_after=runs[1],
        before_at_s=runs[0].finished_at.timestamp(), after_at_s=runs[1].finished_at.timestamp(),
        mean_before=1100, mean_after=1000, change_ratio=-0.0909, n_before=9, n_after=5, p=0.001,
    )  # fmt: skip
    sheet = freeze(admin.team, subject_of("trend", runs)).sheet
    plot = sheet.plots[0]
    assert isinstance(plot, CurvePlot)
    assert [rule.at for rule in plot.rules] == [plot.right]
    assert f"Throughput fell by 9.1 % with run #{runs[1].number}" in sheet.sentence
    assert (sheet.tone, sheet.badge_value.partition(", ")[2]) == ("bad", "regression −9.1 %")


@pytest.mark.parametrize(
    "columns, text",
    [(11, "-Xmx4g -Dname=value " * 60), (41, "9.87 ms"), (11, "W" * 900)],
    ids=["ten_runs_with_long_settings", "percentiles_of_forty_variants", "words_without_end"],
)
def test_a_table_that_is_too_wide_for_the_paper_still_becomes_a_pdf(columns: int, text: str) -> None:
    heads = tuple(f"variant {number} {'W' * 70}" for number in range(columns))
    sheet = Sheet(
        title="limits \u202e\u0001 😀",
        sentence="",
        badge_label="",
        badge_value="",
        sections=(Table(title="Settings", heads=heads, rows=((text,) * columns,)),),
        frozen_at=timezone.now(),
        made_by_version="1",
    )
    assert sheet_pdf(sheet, url="", pictures={}).startswith(b"%PDF")
