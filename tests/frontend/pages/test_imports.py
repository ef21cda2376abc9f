"""Reports and recordings from elsewhere, given to a page: every load tool, every monitor, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils.html import escape

from agents.drivers.reading import REPORTING
from agents.recordings import RECORDINGS
from experiments.asking.intake.imports import MAX_REPORT_CHARS
from experiments.models import Artifact, Member, Role, Run, SampleSeries, Team
from tests.agents.recorded import CASES, cases
from tests.experiments.conftest import MakeMember, admin, make_member, team
from tests.frontend.flat import flat
from tests.frontend.test_forms_access import signed_in

__all__ = ["admin", "make_member", "team"]

ADDRESS = "/t/perf/runs/import/"
RECORDED = {"nmon": "nmon-loaded.nmon", "mpstat": "mpstat-json.json", "top": "top-threads.txt"}


@pytest.fixture
def page(admin: Member) -> Client:
    return signed_in(admin)


@pytest.mark.parametrize("kind", REPORTING)
def test_a_report_of_every_load_tool_becomes_a_run(kind: str, page: Client) -> None:
    case = next(one for one in cases(kind) if one.expected.get("throughput_rps"))
    upload = SimpleUploadedFile("report.txt", case.raw)
    given = {"kind": kind, "file": upload, "command": case.command, "labels": "cpus=4"}
    answer = page.post(ADDRESS, given)
    run = Run.objects.get()
    assert answer.headers["Location"] == f"/t/perf/runs/{run.number}/"
    assert (run.origin, run.labels) == (Run.Origin.IMPORTED, {"cpus": "4"})
    assert run.metrics["throughput_rps"] == pytest.approx(case.expected["throughput_rps"], rel=1e-2)
    assert page.get(answer.headers["Location"]).status_code == 200


@pytest.mark.parametrize(("given", "runs"), [({}, 1), ({"split": "on"}, 2)], ids=["as one", "split"])
def test_a_file_with_two_runs_of_jmeter_is_as_many_runs_as_its_box_says(
    given: dict[str, str], runs: int, page: Client
) -> None:
    head = "timeStamp,elapsed,label,responseCode,responseMessage,success,bytes,sentBytes,Latency\n"
    text = head + "".join(
        f"{1_760_000_000_000 + begin_ms + i * 25},5,GET,200,OK,true,100,50,4\n"
        for begin_ms in (0, 240_000)
        for i in range(1600)
    )
    answer = page.post(ADDRESS, {"kind": "jmeter", "text": text, **given}, follow=True).content.decode()
    rates = [round(run.metrics["throughput_rps"]) for run in Run.objects.order_by("number")]
    assert len(rates) == runs
    assert ("The report is 2 runs, #1 to #2." in answer) is (runs == 2)
    assert (rates == [40, 40]) is (runs == 2)


def test_a_short_window_stands_on_the_page_of_the_run(page: Client) -> None:
    page.post(ADDRESS, {"kind": "wrk", "text": (CASES / "wrk" / "basic.txt").read_text()})
    shown = page.get("/t/perf/runs/1/").content.decode().partition("Validity checks")[0]
    assert "s were measured: under 10 s nothing tells what lasts from what passes." in shown


def test_the_machines_of_two_imports_stand_side_by_side(page: Client) -> None:
    text = next(one for one in cases("wrk") if one.name == "wrk/basic").text
    machines = {one.name: one.text for one in cases("lscpu")}
    for name in ("lscpu/seed-x86", "lscpu/seed-arm64"):
        assert page.post(ADDRESS, {"kind": "wrk", "text": text, "machine": machines[name]}).status_code == 302
    (cpu,) = page.get("/t/perf/hosts/hardware/").context["groups"]
    facts = {fact.label: (fact.left, fact.right, fact.differs) for fact in cpu.facts}
    assert facts["Architecture"] == ("x86_64", "aarch64", True)
    assert facts["Model"] == ("Intel(R) Xeon(R) Gold 6266C CPU @ 3.00GHz", "—", False)
    assert facts["Count"] == ("8", "8", False)
    assert ["asimd" in side.split() for side in facts["Flags that it alone has"][:2]] == [False, True]
    digests = [run.sut_profile.digest for run in Run.objects.order_by("number") if run.sut_profile]
    asked = page.get(f"/t/perf/hosts/hardware/?a={digests[1]}&b={digests[1]}").context["groups"]
    assert [group.differing for group in asked] == [0]
    assert page.get("/t/perf/hosts/hardware/?a=nope").status_code == 404
    wrong = page.post(ADDRESS, {"kind": "wrk", "text": text, "machine": "fast"})
    assert (wrong.status_code, list(wrong.context["form"].errors)) == (422, ["machine"])


def test_a_pasted_text_is_read_as_it_is_and_the_form_keeps_what_was_typed(page: Client) -> None:
    text = next(one for one in cases("wrk") if one.name == "wrk/basic").text
    assert page.post(ADDRESS, {"kind": "wrk", "text": text, "measured_at": "2026-01-02T03:04:05"}).status_code == 302
    assert Run.objects.get().measured_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    wrong = page.post(ADDRESS, {"kind": "k6", "text": text, "command": "k6 run x.js"})
    assert (wrong.status_code, Run.objects.count()) == (422, 1)
    assert 'value="k6 run x.js"' in wrong.content.decode()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "Choose a file, or paste its text."),
        ({"text": "x", "file": SimpleUploadedFile("r.txt", b"x")}, "not both"),
        ({"file": SimpleUploadedFile("r.txt", b"\xff\xfe")}, "not UTF-8"),
        ({"file": SimpleUploadedFile("r.txt", b"x\0")}, "holds NUL characters"),
        ({"file": SimpleUploadedFile("r.txt", b"x" * 5_000_001)}, "at most 5,000,000 characters are read here."),
        ({"file": SimpleUploadedFile("r.txt", b"x" * 20_000_005)}, "at most 5,000,000 characters are read here."),
        ({"kind": "jmeter", "file": SimpleUploadedFile("r.txt", b"x" * 5_000_001)}, "parse jmeter FILE` reads files"),
        ({"text": "x" * 5_000_001}, "at most 5,000,000 characters."),
        ({"text": "Running 10s test"}, "report of wrk in the text"),
        ({"text": "x", "labels": "no"}, "is no label"),
        ({"text": "x", "kind": "sar"}, "Select a valid choice"),
    ],
    ids=["nothing", "both", "binary", "nul", "large", "huge", "large-jmeter", "long", "no-report", "labels", "kind"],
)
def test_what_cannot_be_imported_is_said_and_nothing_is_stored(
    page: Client, given: dict[str, object], words: str
) -> None:
    answer = page.post(ADDRESS, {"kind": "wrk", **given})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not Run.objects.exists()


def test_a_file_is_measured_in_characters_as_its_text_is(page: Client) -> None:
    text = next(one for one in cases("wrk") if one.name == "wrk/basic").text
    padded = text + "ä" * (MAX_REPORT_CHARS - len(text))
    assert len(padded.encode()) > MAX_REPORT_CHARS
    answer = page.post(ADDRESS, {"kind": "wrk", "file": SimpleUploadedFile("r.txt", padded.encode())})
    assert answer.status_code == 302, answer.content.decode()[-3000:]


def test_a_box_to_tick_says_what_it_does(page: Client) -> None:
    assert "to which JMeter appended becomes a run for each" in page.get(ADDRESS).content.decode()


@pytest.mark.parametrize("kind", RECORDINGS)
def test_a_recording_of_every_monitor_is_put_onto_the_clock_of_a_run(kind: str, page: Client) -> None:
    text = next(one for one in cases("wrk") if one.name == "wrk/basic").text
    page.post(ADDRESS, {"kind": "wrk", "text": text, "measured_at": "2026-11-20T09:00:00"})
    address = "/t/perf/runs/1/recordings/new/"
    assert page.get(address).status_code == 200
    upload = SimpleUploadedFile("x", (CASES / "recordings" / RECORDED[kind]).read_bytes())
    given = {"kind": kind, "role": "sut", "file": upload, "started_at": "2026-11-20T09:00:02"}
    answer = page.post(address, given, follow=True)
    assert answer.status_code == 200
    stored = SampleSeries.objects.filter(role="sut", channel__startswith=f"{kind}.")
    assert {series.at_s[0] for series in stored} == {2.0}
    refused = page.post(address, {"kind": kind, "role": "driver-9", "text": "x"})
    assert (refused.status_code, "Select a valid choice" in refused.content.decode()) == (422, True)


def test_a_viewer_imports_nothing(team: Team, make_member: MakeMember) -> None:
    viewer = signed_in(make_member(team, Role.VIEWER))
    assert viewer.get(ADDRESS).status_code == 403
    assert viewer.post(ADDRESS, {"kind": "wrk", "text": "x"}).status_code == 403


def test_a_text_that_is_known_by_its_content_is_shown_before_it_is_stored(page: Client) -> None:
    case = next(one for one in cases("hyperfine") if one.name == "hyperfine/three-commands")
    upload = SimpleUploadedFile("runs.json", case.raw)
    shown = page.post(ADDRESS, {"kind": "auto", "file": upload, "labels": "a=b"})
    text = flat(shown.content.decode())
    assert (shown.status_code, Run.objects.count()) == (200, 0)
    assert "This looks like hyperfine" in text
    results: Any = case.expected["results"]
    count = sum(one["repetitions"]["count"] for one in results)
    assert f"Store {count} runs" in text
    assert [text.count(escape(one["benchmark"])) > 1 for one in results] == [True] * len(results)
    form = shown.context["form"]
    again = {name: form[name].value() for name in ("kind", "text", "file_name", "labels")}
    assert (again["kind"], again["file_name"], again["labels"]) == ("hyperfine", "runs.json", "a=b")
    stored = page.post(ADDRESS, again | {"text": again["text"].replace("\n", "\r\n")}, follow=True)
    assert f"The report is {count} runs" in stored.content.decode()
    assert Run.objects.count() == count
    assert Artifact.objects.get().content == case.raw
    assert page.get(f"/t/perf/runs/{Run.objects.latest('number').number}/").status_code == 200


def upload(case: str) -> SimpleUploadedFile:
    path = next((CASES / case).parent.glob(f"{Path(case).name}.[!e]*"))
    return SimpleUploadedFile(path.name, path.read_bytes())


def test_several_files_are_shown_one_by_one_and_are_one_import(page: Client) -> None:
    files = [upload("hyperfine/three-commands"), upload("hey/basic")]
    shown = page.post(ADDRESS, {"kind": "auto", "file": files, "labels": "a=b"})
    text = flat(shown.content.decode())
    assert (shown.status_code, Run.objects.count()) == (200, 0)
    assert f"{files[0].name} looks like hyperfine" in text
    assert f"{files[1].name} looks like hey" in text
    form = shown.context["form"]
    again = {name: form[name].value() for name in ("kind", "text", "shown_files", "labels")}
    stored = page.post(ADDRESS, again, follow=True).content.decode()
    count = shown.context["count"]
    assert count > 3
    assert f"Store {count} runs" in text
    assert f"The 2 files are {count} runs" in stored
    assert len({run.labels["import"] for run in Run.objects.all()}) == 1
    assert {run.labels["a"] for run in Run.objects.all()} == {"b"}
    assert Artifact.objects.count() == 2


def test_several_files_of_a_kind_that_is_chosen_are_stored_at_once(page: Client) -> None:
    page.post(ADDRESS, {"kind": "wrk", "file": [upload("wrk/basic"), upload("wrk/basic")]})
    assert Run.objects.count() == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "auto"}, "note.txt: No report of a load tool"),
        ({"kind": "wrk"}, "note.txt: "),
        ({"kind": "wrk", "command": "wrk -c1 http://a/"}, "have no command line in common"),
        ({"kind": "wrk", "text": "Running"}, "Give files or a text, not both"),
    ],
)
def test_one_file_that_cannot_be_read_is_named_and_nothing_is_stored(
    given: dict[str, str], words: str, page: Client
) -> None:
    files = [
        upload("hyperfine/three-commands") if given["kind"] == "auto" else upload("wrk/basic"),
        SimpleUploadedFile("note.txt", b"hello"),
    ]
    answer = page.post(ADDRESS, {"file": files, **given})
    assert (answer.status_code, Run.objects.count()) == (422, 0)
    assert words in flat(answer.content.decode())


def test_files_that_did_not_come_back_whole_are_asked_for_again(page: Client) -> None:
    answer = page.post(ADDRESS, {"kind": "auto", "shown_files": '[{"name": "a"'})
    assert (answer.status_code, Run.objects.count()) == (422, 0)
    assert "choose them again" in answer.content.decode()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"text": "hello"}, "kind"),
        ({"text": (CASES / "bmf/two-measures.json").read_text()}, "directions"),
        ({"text": (CASES / "bmf/two-measures.json").read_text(), "directions": "*=less"}, "directions"),
    ],
)
def test_what_is_not_known_by_its_content_is_said_at_the_field(page: Client, given: dict[str, str], field: str) -> None:
    answer = page.post(ADDRESS, {"kind": "auto"} | given)
    form = answer.context["form"]
    assert (answer.status_code, list(form.errors)) == (422, [field])
    assert form["text"].value() == given["text"]
    assert not Run.objects.exists()
