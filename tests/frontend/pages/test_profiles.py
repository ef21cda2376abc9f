"""The flame graph of a run and functions side by side: what the pages lead to, and what they say without profiles."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.profiles.base.taken import TakenProfile
from experiments.models import Member
from experiments.registry.runs.run_profiles import store_run_profile
from experiments.registry.teams.tokens import issue
from tests.frontend.conftest import MakeRun
from tests.frontend.flames import flame_of

pytestmark = pytest.mark.django_db

STACKS = b"[exec-1 tid=7];run;parse 60\n[exec-2 tid=9];run;parse 20\n[exec-1 tid=7];run;render 20\n"


def test_a_run_leads_to_its_flame_graph_and_its_files(browser: Client, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)
    taken = TakenProfile("async-profiler", event="cpu", cpu_time_s=2.0, requests=10_000)
    name = store_run_profile(run, STACKS, taken).name
    place = f"/t/perf/runs/{run.number}/"
    assert f"{place}profiles/{name}/" in browser.get(place).content.decode()
    page = browser.get(f"{place}profiles/{name}/").content.decode()
    assert f'data-url="{place}profiles/{name}/tree"' in page
    assert "200.0 µs" in page
    head, _, own = flame_of(browser.get(f"{place}profiles/{name}/tree").content)
    assert own.sum() == 100
    assert [head["names"][at] for at in head["threads"]] == ["[exec-# tid=#]"]  # one pool, one thread to choose
    for form in ("collapsed", "pprof", "speedscope"):
        assert browser.get(f"{place}profiles/{name}/file?form={form}").status_code == 200
    assert browser.get(f"{place}profiles/{name}/file?form=perf-script").status_code == 404
    assert browser.get(f"{place}profiles/none/").status_code == 404


@pytest.mark.parametrize(
    "event, heading",
    [
        ("wall", "Where threads were, at work or waiting"),
        ("alloc", "Where memory was allocated"),
        ("lock", "Where threads waited for locks"),
        ("page-faults", "Where the samples were taken"),
    ],
)
def test_what_is_no_cpu_time_has_no_cost_per_request_and_says_what_it_shows(
    browser: Client, make_run: MakeRun, event: str, heading: str
) -> None:
    run = make_run(throughput_rps=1000.0)
    taken = TakenProfile("async-profiler", event=event, cpu_time_s=2.0, requests=10_000)  # as every window has them
    name = store_run_profile(run, STACKS, taken).name
    place = f"/t/perf/runs/{run.number}/"
    page = browser.get(f"{place}profiles/{name}/").content.decode()
    assert heading in page
    assert f"none: {event} is no CPU" in page
    assert "µs" not in page
    assert "200.0 µs" not in browser.get(place).content.decode()
    assert flame_of(browser.get(f"{place}profiles/{name}/tree").content)[0]["cost_us"] is None


PERF = "".join(f"busy 7 {at}.0: 5 cycles:\n\t 11 f (x)\n\n" for at in (100, 101, 104, 106)).encode()


@pytest.mark.parametrize(
    "said, start_s, on_load",
    [({}, 0.0, False), ({"window_s": (5.0, 12.0)}, 5.0, True), ({"window_s": (5.0, 12.0), "clock_s": 94.5}, 5.5, True)],
    ids=["without a window", "from its first sample", "by the clock of the host"],
)
def test_the_page_gets_the_times_of_a_profile_on_the_clock_of_the_load(
    browser: Client, make_run: MakeRun, said: dict[str, Any], start_s: float, on_load: bool
) -> None:
    run = make_run(throughput_rps=1000.0)
    name = store_run_profile(run, PERF, TakenProfile("perf", **said)).name
    head, _, _ = flame_of(browser.get(f"/t/perf/runs/{run.number}/profiles/{name}/tree").content)
    slices = head["slices"]
    assert (slices["start_s"], slices["step_s"], head["on_load"]) == (start_s, pytest.approx(0.1), on_load)
    assert slices["edges"][-1] == 4


def test_a_profile_without_times_has_none_on_its_page(browser: Client, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)
    name = store_run_profile(run, STACKS, TakenProfile("async-profiler", event="cpu")).name
    place = f"/t/perf/runs/{run.number}/profiles/{name}/"
    assert "slices" not in flame_of(browser.get(f"{place}tree").content)[0]
    assert "No times in this profile." in browser.get(place).content.decode()


KNOWN, UNKNOWN = b"run;parse 100\n", b"run;parse 79\n[unknown] 21\n"


@pytest.mark.parametrize(
    "before, after, content, words",
    [
        ({"event": "cpu"}, {"event": "cycles"}, KNOWN, "different events: cpu and cycles"),
        ({"event": "cpu"}, {"event": "wall"}, KNOWN, "There is no profiled run of one of the variants"),
        ({"engine": "perf_events"}, {"engine": "ctimer"}, KNOWN, "different engines: ctimer and perf_events"),
        ({"engine": "perf_events"}, {}, KNOWN, "different engines: async-profiler and perf_events"),
        ({}, {"profiler": "py-spy"}, KNOWN, "different engines: async-profiler and py-spy"),
        ({"event": "wall"}, {"event": "wall"}, KNOWN, "of wall, which is no CPU time"),
        ({}, {}, UNKNOWN, "21% of the CPU time is in functions that nobody knows; the limit is 20%"),
    ],
)
def test_what_cannot_be_compared_has_no_difference_on_the_page_and_over_the_api(
    browser: Client,
    make_run: MakeRun,
    admin: Member,
    before: dict[str, Any],
    after: dict[str, Any],
    content: bytes,
    words: str,
) -> None:
    runs = [make_run(throughput_rps=1000.0) for _ in range(2)]
    for run, said, text in zip(runs, (before, after), (KNOWN, content), strict=True):
        store_run_profile(run, text, TakenProfile(**{"profiler": "async-profiler", **said}, cpu_time_s=2, requests=99))
    query = f"before={runs[0].number}&after={runs[1].number}"
    page = browser.get(f"/t/perf/compare/functions/?{query}").content.decode()
    assert "No difference: " in page
    assert words in page
    assert "Cost of each function" not in page
    token = issue(admin, name="reads", scopes=["read"])[1]
    answer = Client().get(f"/api/v1/functions?{query}", headers={"authorization": f"Bearer {token}"})
    assert words in answer.json()["why_not"]
    assert answer.json()["own"] == answer.json()["total"] == []


def test_compare_leads_to_functions_and_an_unknown_majority_is_said(
    browser: Client, make_run: MakeRun, admin: Member
) -> None:
    first, second, plain = (make_run(throughput_rps=1000.0) for _ in range(3))
    for run in (first, second):
        store_run_profile(run, b"run;parse 60\n[unknown] 40\n", TakenProfile("perf", event="cpu-clock"))
    numbers = f"{first.number},{second.number}"
    compare = browser.get(f"/t/perf/compare/?runs={numbers}").content.decode()
    assert f"/compare/functions/?before={first.number}&amp;after={second.number}" in compare
    page = browser.get(f"/t/perf/compare/functions/?before={first.number}&after={second.number}")
    assert "No difference: The CPU time of the server or its requests are not known" in page.content.decode()
    assert browser.get(f"/t/perf/runs/{first.number}/profiles/perf-cpu-clock/").content.decode().count("40 %") >= 2
    for query, status in (("", 200), (f"?before={plain.number}&after={plain.number}", 404), ("?before=x&after=1", 422)):
        assert browser.get(f"/t/perf/compare/functions/{query}").status_code == status
    assert browser.get("/t/perf/compare/functions/tree?before=999&after=1").status_code == 422
