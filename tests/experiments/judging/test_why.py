"""From profiled runs of an experiment to functions side by side and an answer to why, on pages and in the API."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.test import Client

from agents.profiles.base.taken import TakenProfile
from bench.made_up_profiles import cost_ratio, made_up_profile
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.judging.comparing.functions import compared_functions, functions_of_variants
from experiments.judging.explaining.why import why_of_alert, why_of_experiment
from experiments.judging.verdicts.judging import store_verdicts
from experiments.models import Alert, Experiment, Member, Run, SampleSeries
from experiments.registry.runs.run_profiles import store_run_profile
from tests.experiments.api.conftest import MakeApi, make_api
from tests.experiments.trend_runs import AddRun, nights, the_alert
from tests.frontend.conftest import browser, browser_of
from tests.frontend.flames import flame_of

__all__ = ["browser", "browser_of", "make_api"]

CPU = TakenProfile("async-profiler", event="cpu", engine="perf_events", window_s=(0.0, 10.0))
DECIMAL = "com/acme/json/Decimal.read"


def finished(run: Run, throughput_rps: float) -> None:
    run.state, run.outcome, run.validity = "finished", "succeeded", "valid"
    run.throughput_rps, run.metrics = throughput_rps, {"throughput_rps": throughput_rps}
    run.save()


@pytest.fixture
def slower(admin: Member, stock: dict[str, Any]) -> Experiment:
    """Five blocks: the candidate is slower, has a costlier parser and waits for disks; every run has a profile."""
    source = np.random.default_rng(3)
    hosts = stock["sut"], stock["drivers"]
    candidates = [
        Candidate(name, stock["application"], stock["recipe"], *hosts, {"nofile": files})
        for name, files in (("old", 4096), ("new", 8192))
    ]
    experiment = create_experiment(
        admin, name="parser", workload=stock["workload"], candidates=candidates, repetitions=5
    )
    launch_experiment(admin, experiment)
    for run in experiment.runs.select_related("variant").order_by("number"):
        changed = run.variant is not None and not run.variant.is_baseline
        rate = 1000 / cost_ratio(changed=changed) * float(np.exp(source.normal(0, 0.005)))
        finished(run, rate)
        SampleSeries.objects.create(
            run=run, role="sut", channel="cpu.iowait_ratio", unit="ratio", at_s=[1.0, 5.0],
            values=[0.01 + 0.08 * changed + source.normal(0, 0.001)] * 2,
        )  # fmt: skip
        cpu_time_s = 0.0002 * cost_ratio(changed=changed) * float(np.exp(source.normal(0, 0.01))) * rate * 10
        taken = TakenProfile(**{**vars(CPU), "cpu_time_s": cpu_time_s, "requests": round(rate * 10)})
        store_run_profile(run, made_up_profile(source, changed=changed), taken)
    store_verdicts(experiment)
    return experiment


def test_a_slower_candidate_is_answered_with_functions_waiting_and_configuration(
    slower: Experiment, admin: Member, make_api: MakeApi, browser: Client
) -> None:
    (answer,) = why_of_experiment(slower)
    assert answer.why is not None
    assert [one.kind for one in answer.why.found if one.evidence == "interval"][:1] == ["functions"]
    kinds = {one.kind for one in answer.why.found if one.evidence == "interval"}
    assert kinds == {"functions", "waiting"}
    names = [one.name for one in answer.why.found if one.kind == "functions" and one.evidence == "interval"]
    assert "java/math/BigDecimal.<init>" in names
    gone = next(one for one in answer.why.found if one.name == "com/acme/json/Parser.number")
    assert gone.evidence == "against"  # it costs nothing any more, which does not explain a loss
    assert "is gone" in gone.sentence

    api = make_api(admin)
    said = api.get(f"/experiments/{slower.pk}/why").json()
    assert [one["sentence"] for one in said[0]["found"]] == [one.sentence for one in answer.why.found]
    functions = api.get(f"/experiments/{slower.pk}/functions").json()[0]
    own = {row["name"]: row for row in functions["own"]}
    assert own["java/math/BigDecimal.<init>"]["verdict"] == "more"
    total = sum(row["change_us"] for row in (*functions["own"], functions["rest"]))
    assert total == pytest.approx(functions["whole"]["change_us"])

    place = f"/t/{admin.team.slug}"
    page = browser.get(f"{place}/experiments/{slower.pk}/").content.decode()
    assert f"/compare/functions/?experiment={slower.pk}" in page
    part = browser.get(f"{place}/experiments/{slower.pk}/?part=why").content.decode()
    assert "java/math/BigDecimal.&lt;init&gt; costs" in part
    table = browser.get(f"{place}/compare/functions/?experiment={slower.pk}&candidate=new").content.decode()
    assert "Costs more" in table
    assert "block by block" in table
    report = api.get(f"/experiments/{slower.pk}/report?format=markdown").content.decode()
    assert "Shown: java/math/BigDecimal.<init> costs" in report.replace("\\", "")
    assert "Why?" in browser.get(f"{place}/experiments/{slower.pk}/report/").content.decode()
    head, name, shares = flame_of(browser.get(f"{place}/compare/functions/tree?experiment={slower.pk}").content)
    costs = [functions["whole"]["baseline_us"], functions["whole"]["candidate_us"]]
    assert list(shares.sum(axis=1)) == pytest.approx(costs)
    vanished = shares[:, name == head["names"].index("com/acme/json/Parser.number")].sum(axis=1)
    assert vanished[0] > 0 == vanished[1]


WHY_NOT: dict[str, tuple[dict[str, Any], str]] = {
    "other events": ({"event": "itimer"}, "different events: cpu and itimer"),
    "other engines": ({"engine": "ctimer"}, "different engines"),
    "nobody knows the CPU time": ({"cpu_time_s": None}, "are not known of every profiled run"),
    "unknown functions": ({"unknown_ratio": 0.31}, "31% of the CPU time is in functions that nobody knows"),
}


@pytest.mark.parametrize("case", WHY_NOT)
def test_profiles_that_do_not_fit_together_have_no_difference_and_say_why(
    slower: Experiment, admin: Member, browser: Client, case: str
) -> None:
    change, said = WHY_NOT[case]
    run = slower.runs.filter(variant__is_baseline=False).latest("number")
    run.profiles.update(**change)
    (found,) = functions_of_variants(slower)
    assert found.changes is None
    assert said in found.why_not
    page = browser.get(f"/t/{admin.team.slug}/compare/functions/?experiment={slower.pk}").content.decode()
    assert "No difference: " in page
    tree = browser.get(f"/t/{admin.team.slug}/compare/functions/tree?experiment={slower.pk}").content
    assert flame_of(tree)[0]["unit"] == "pct"


def test_what_is_no_cpu_time_has_no_cost_and_profiling_that_slows_a_server_down_distorts(slower: Experiment) -> None:
    for run in slower.runs.order_by("number"):  # a twin without a profile in the same block, 5 % faster
        twin = Run.objects.get(pk=run.pk)
        twin.pk, twin.number = None, run.number + 1000
        finished(twin, (run.throughput_rps or 0.0) * 1.05)
    (found,) = functions_of_variants(slower)
    assert any(note.startswith("Distorted: profiling itself changed the throughput by −4.8 %") for note in found.notes)
    assert any("load was closed" in note for note in found.notes)
    runs = list(slower.runs.filter(profiles__isnull=False))
    for run in runs:
        run.profiles.update(event="wall")
    waits = compared_functions(("a", "b"), (runs[:1], runs[1:]))
    assert waits is not None
    assert "no CPU time" in waits.why_not
    assert why_of_experiment(slower)[0].functions is not None


def test_a_change_point_is_answered_from_the_runs_around_it(
    admin: Member, add_run: AddRun, browser: Client, make_api: MakeApi
) -> None:
    levels = [1000.0, 1003.0, 998.0, 1001.0, 999.0, 1002.0, 1000.0, 900.0, 903.0, 898.0, 901.0, 899.0, 902.0]
    for at, run in enumerate(nights(add_run, levels)):
        slow = at >= 7
        SampleSeries.objects.create(
            run=run, role="sut", channel="pressure.cpu_ratio", unit="ratio", at_s=[1.0, 2.0],
            values=[0.02 + 0.2 * slow + 0.001 * (at % 3)] * 2,
        )  # fmt: skip
    alert = the_alert()
    answer = why_of_alert(alert)
    assert answer is not None
    assert answer.why is not None
    assert answer.why.found[0].name == "sut pressure.cpu_ratio"
    assert "Functions: no run has a profile." in answer.why.missing
    assert make_api(admin).get(f"/alerts/{alert.pk}/why").json()["headline"] == answer.why.headline
    assert "pressure.cpu_ratio: 22" in browser.get(f"/t/{admin.team.slug}/alerts/{alert.pk}/?part=why").content.decode()
    Alert.objects.update(run_before=None)
    assert why_of_alert(Alert.objects.get()) is None
