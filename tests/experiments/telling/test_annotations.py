"""Annotations for dashboards: what happened in a window, in the fields that Grafana's Infinity data source reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents import events as e
from agents.base.setting_outcome import SettingOutcome
from experiments.asking.launching.bulk import archive_runs
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.judging.alerts.triage import triage
from experiments.keeping.retention.trash import restore_runs, trash_runs
from experiments.models import Alert, Host, Member, Run
from experiments.registry.hosts.inventory import clear_dirty, set_drained
from experiments.registry.notes.chart_notes import annotate
from tests.experiments.api.conftest import ApiClient, MakeApi, api, make_api  # noqa: F401 - fixtures
from tests.experiments.conftest import ready_host
from tests.experiments.finished import finish_next, whole_run
from tests.experiments.trend_runs import AddRun, nights

SECRET = "whole file, for root alone"


def told_at(found: Iterable[e.AnyEvent], at_unix_s: float) -> list[e.AnyEvent]:
    """The same events with a clock: each phase begins a second after the one before."""
    told: list[e.AnyEvent] = []
    for event in found:
        if isinstance(event, e.PhaseStarted):
            told.append(e.PhaseStarted(event.phase, at_unix_s + e.PHASES.index(event.phase)))
        elif isinstance(event, e.LoadStarted):
            told.append(e.LoadStarted(event.index, event.measured, 1, at_unix_s + 6))
        elif isinstance(event, e.StepApplied):
            changed = SettingOutcome("net.core.somaxconn", "65535", "4096", "65535", "applied")
            told.append(e.StepApplied(0, (changed, SettingOutcome("content", SECRET, None, SECRET, "applied")), {}))
        else:
            told.append(event)
    return told


@pytest.fixture
def began_at() -> datetime:
    return timezone.now() - timedelta(seconds=60)


@pytest.fixture
def run(admin: Member, stock: dict[str, Any], began_at: datetime) -> Run:
    launch_run(admin, Choice(**stock), labels={"commit": "4f2c9d1", "opts": "-Xlog:gc*,safepoint=info"})
    found = finish_next(told_at(whole_run(), began_at.timestamp()))
    Run.objects.filter(pk=found.pk).update(started_at=began_at, finished_at=began_at + timedelta(seconds=20))
    return found


def asked(api: ApiClient, query: str) -> list[dict[str, Any]]:  # noqa: F811
    answer = api.get(f"/annotations/grafana?{query}")
    assert answer.status_code == 200, answer.content
    rows: list[dict[str, Any]] = answer.json()
    assert all(set(row) == {"time", "timeEnd", "title", "text", "tags", "url"} for row in rows)
    return rows


def test_a_run_is_there_with_its_measured_load_its_phases_and_its_steps(
    api: ApiClient,  # noqa: F811
    run: Run,
    began_at: datetime,
) -> None:
    start_ms = int(began_at.timestamp() * 1000)
    whole, measured = sorted(asked(api, "host=sut-1"), key=lambda row: row["time"])
    assert (whole["time"], whole["timeEnd"]) == (start_ms, start_ms + 20_000)
    assert whole["title"] == f"Run #{run.number} succeeded"
    assert {"benchhub", "run", "host:sut-1", "host:driver-1", "commit=4f2c9d1"} <= set(whole["tags"])
    assert whole["url"].endswith(f"/t/perf/runs/{run.number}/")
    assert abs(measured["time"] - start_ms - 6000) <= 1
    assert measured["timeEnd"] - measured["time"] == 1000
    phases = asked(api, "kinds=phase")
    assert [row["tags"][1] for row in reversed(phases)] == list(e.PHASES)
    assert {row["timeEnd"] - row["time"] for row in phases} == {500}
    steps = asked(api, "kinds=step")
    assert {row["title"].partition(": ")[2] for row in steps} == {
        "Private instance directory applied",
        "Private instance directory undone",
    }
    applied = next(row for row in steps if "applied" in row["tags"])
    assert applied["text"] == "net.core.somaxconn: 4096 → 65535"
    assert SECRET not in str(steps)


def test_a_window_within_a_run_has_the_run_and_none_of_the_steps_before_it(api: ApiClient, run: Run) -> None:  # noqa: F811
    later = timezone.now() + timedelta(minutes=30)
    Run.objects.filter(pk=run.pk).update(finished_at=later + timedelta(minutes=30))
    at_ms = int(later.timestamp() * 1000)
    found = asked(api, f"from={at_ms}&to={at_ms}&kinds=run,measured,step")
    assert [row["tags"][0] for row in found] == ["run"]


@pytest.mark.parametrize(
    "query, count",
    [
        ("label=commit=4f2c9d1&kinds=run", 1),
        ("label=opts=-Xlog:gc*,safepoint=info&label=commit=4f2c9d1&kinds=run", 1),
        ("label=commit=other&label=commit=4f2c9d1&kinds=run,note,alert", 0),
        ("label=commit=other&kinds=run,measured,note,alert,host", 0),
        ("host=driver-1,sut-9&kinds=run", 1),
        ("host=sut-9", 0),
        ("to=86400000", 0),
        ("limit=1", 1),
    ],
)
def test_the_list_is_narrowed(api: ApiClient, run: Run, query: str, count: int) -> None:  # noqa: F811
    assert len(asked(api, query)) == count


def test_a_second_page_goes_on_where_the_first_ended(api: ApiClient, run: Run) -> None:  # noqa: F811
    rows = asked(api, "kinds=phase")
    first = api.get("/annotations/grafana?kinds=phase&limit=4")
    assert 'cursor=4>; rel="next"' in first["Link"]
    assert first.json() + asked(api, "kinds=phase&limit=100&cursor=4") == rows


def test_changes_of_level_stand_at_the_first_run_of_the_new_one(api: ApiClient, add_run: AddRun) -> None:  # noqa: F811
    runs = nights(add_run, [1000.0] * 10 + [800.0] * 10)
    assert runs[10].finished_at is not None
    at_ms = int(runs[10].finished_at.timestamp() * 1000)
    changes = [row for row in asked(api, f"kinds=alert&from={at_ms}&to={at_ms}") if "throughput_rps" in row["tags"]]
    assert [(row["time"], row["timeEnd"]) for row in changes] == [(at_ms, None)]
    assert "worse" in changes[0]["tags"]
    assert "fell by" in changes[0]["title"]
    assert asked(api, f"kinds=alert&from={at_ms + 1000}&to={at_ms + 2000}") == []


def test_hosts_out_of_service_are_spans_from_when_to_when_and_why(
    api: ApiClient,  # noqa: F811
    admin: Member,
    stock: dict[str, Any],
) -> None:
    set_drained(admin, stock["sut"], True)
    still = asked(api, "kinds=host")
    assert [(row["title"], row["text"], row["timeEnd"]) for row in still] == [
        ("sut-1 out of service", "Drained by ada.", None)
    ]
    set_drained(admin, stock["sut"], False)
    launch_run(admin, Choice(**stock))
    finish_next(whole_run(differences=("vm.swappiness is 10, was 60",)))
    clear_dirty(admin, Host.objects.get(name="sut-1"), "looked at it")
    dirty, drained = asked(api, "kinds=host&host=sut-1")
    assert "vm.swappiness is 10, was 60" in dirty["text"]
    assert drained["time"] <= drained["timeEnd"] <= dirty["time"] <= dirty["timeEnd"]
    assert asked(api, "kinds=host&host=driver-1") == []


def test_notes_of_people_are_there_and_nothing_of_another_team(
    api: ApiClient,  # noqa: F811
    make_api: MakeApi,  # noqa: F811
    admin: Member,
    other_admin: Member,
    run: Run,
) -> None:
    annotate(admin, run, timezone.now(), "somebody pulled a cable")
    ready_host(other_admin, "sut-1")
    assert [row["text"] for row in asked(api, "kinds=note")] == ["somebody pulled a cable (ada)"]
    assert asked(make_api(other_admin), "kinds=run,measured,phase,step,alert,host,note") == []


def deleted(admin: Member, run: Run) -> None:
    trash_runs(admin, [run.number])


def archived(admin: Member, run: Run) -> None:
    archive_runs(admin, [run.number])


@pytest.mark.parametrize("leaves", [deleted, archived])
@pytest.mark.parametrize("label", ["", "&label=commit=4f2c9d1"])
def test_nothing_tells_of_a_run_that_was_deleted_or_archived(
    api: ApiClient,  # noqa: F811
    admin: Member,
    add_run: AddRun,
    leaves: Callable[[Member, Run], None],
    label: str,
) -> None:
    runs = nights(add_run, [1000.0] * 10 + [800.0] * 10)
    first, last = runs[10], runs[-1]
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(labels={"commit": "4f2c9d1"})
    assert first.finished_at is not None
    assert last.finished_at is not None
    annotate(admin, first, first.finished_at, "somebody pulled a cable")
    alert = Alert.objects.get(trend__metric="throughput_rps")
    triage(admin, alert, state=Alert.Triage.ACKNOWLEDGED)  # or the next search would let it go
    window = f"from={int(first.finished_at.timestamp() * 1000)}&to={int(last.finished_at.timestamp() * 1000)}{label}"
    assert {row["tags"][1] for row in asked(api, f"{window}&kinds=alert,note")} == {"alert", "note"}
    leaves(admin, first)
    Alert.objects.filter(pk=alert.pk).update(run_after=first, stands=False)  # as one that the data no longer show
    assert asked(api, f"{window}&kinds=alert,note") == []


def test_a_note_on_a_deleted_run_is_in_no_list_and_comes_back_with_it(
    api: ApiClient,  # noqa: F811
    admin: Member,
    run: Run,
) -> None:
    note = annotate(admin, run, timezone.now(), "somebody pulled a cable")
    trash_runs(admin, [run.number])
    assert api.get("/annotations").json() == []
    assert api.send("PATCH", f"/annotations/{note.pk}", {"text": "two cables"}).status_code == 404
    restore_runs(admin, [run.number])
    assert [row["text"] for row in api.get("/annotations").json()] == ["somebody pulled a cable"]


@pytest.mark.parametrize(
    "query, field, why",
    [
        ("from=2&to=1", "to", "before from"),
        ("to=99999999999999", "to", "${__from}"),
        ("from=-1", "from", "milliseconds since 1970"),
        ("kinds=runs", "kinds", "there are run, measured, phase"),
        ("label=commit", "label", "key=value"),
        ("from=yesterday", "from", ""),
    ],
)
def test_a_wrong_question_names_its_field(api: ApiClient, query: str, field: str, why: str) -> None:  # noqa: F811
    answer = api.get(f"/annotations/grafana?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert why in answer.json()["detail"]
