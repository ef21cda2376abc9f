"""The pages that show results."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.events import Failed, PhaseStarted
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.judging.alerts.trends import rebuild
from experiments.models import Experiment, Member, Run, Series, StoredVerdict
from experiments.registry.runs.artifacts import keep
from experiments.registry.runs.series import extend_series
from tests.frontend.conftest import FINGERPRINT, MakeRun
from tests.frontend.flat import flat

FINISHED = ("state", "outcome", "validity", "metrics", "config", "fingerprint", "finished_at")
MakeExperiment = Callable[[int], Experiment]


@pytest.fixture
def make_experiment(admin: Member, stock: dict[str, Any], make_run: MakeRun) -> MakeExperiment:
    """An experiment with two variants, `repetitions` finished blocks and a verdict."""

    def make(repetitions: int) -> Experiment:
        workload = stock["workload"]
        parts = {name: stock[name] for name in ("application", "recipe", "sut", "drivers")}
        experiment = create_experiment(
            admin,
            name=f"Limits {repetitions}",
            workload=workload,
            candidates=[Candidate("few", **parts), Candidate("many", **parts, parameters={"nofile": 2048})],
            repetitions=repetitions,
        )
        for run in launch_experiment(admin, experiment):
            done = make_run(throughput_rps=1000.0 + run.number)
            fields = {name: getattr(done, name) for name in FINISHED}
            Run.objects.filter(pk=run.pk).update(**fields)
        few, many = experiment.variants.all()
        StoredVerdict.objects.create(
            experiment=experiment,
            baseline=few,
            candidate=many,
            metric="throughput_rps",
            outcome="better",
            sentence="Throughput: many is faster than few by 5.0 % [4.0, 6.0] (95 %), n=3+3.",
            numbers={},
        )
        return experiment

    return make


def queries_of(browser: Client, url: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        answer = browser.get(url)
    assert answer.status_code == 200, url
    return len(captured)


def test_a_run_page_tells_the_figures_the_journal_and_the_proof(browser: Client, make_run: MakeRun) -> None:
    make_run(throughput_rps=1000.0)
    run = make_run(throughput_rps=1100.0)
    rebuild(extend_series(run, application="app", workload="load", tool="wrk 4", latency_basis="service_time"))

    page = browser.get(f"/t/perf/runs/{run.number}/").content.decode()

    assert "1,100" in page
    assert "+10.0 %" in page
    assert "Changes are against previous run #1." in page
    assert "net.core.somaxconn" in page
    assert "Not on this host" in page
    assert "1 of 1 change undone" in flat(page)


def test_nothing_is_called_better_than_or_because_of_an_invalid_run(browser: Client, make_run: MakeRun) -> None:
    first, second = make_run(throughput_rps=1000.0), make_run(throughput_rps=2000.0, validity="invalid")

    page = browser.get(f"/t/perf/runs/{second.number}/").content.decode()
    comparison = browser.get(f"/t/perf/compare/?runs={first.number},{second.number}").content.decode()

    assert "+100 %" not in page
    assert "An invalid run is not compared" in flat(page)
    assert "+100 %" in comparison
    assert 'class="change good"' not in comparison


def test_what_a_server_prints_is_never_markup(browser: Client, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0, failure="<script>alert(2)</script>", outcome="failed")

    page = browser.get(f"/t/perf/runs/{run.number}/").content.decode()

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_latency_that_saturation_hides_is_not_shown(browser: Client, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0, hides_latency=True)

    page = browser.get(f"/t/perf/runs/{run.number}/").content.decode()

    assert "9.00 ms" not in page
    assert "Latency is not shown" in page


def test_a_failed_run_names_the_phase_the_reason_and_the_host_that_is_dirty(browser: Client, make_run: MakeRun) -> None:
    events = (PhaseStarted("start"), Failed("start", "No answer.", "Look at the port."))
    run = make_run(
        throughput_rps=1.0,
        events=events,
        outcome="failed",
        validity="",
        restore="dirty",
        failure="No answer.",
        failure_hint="Look at the port.",
    )

    page = browser.get(f"/t/perf/runs/{run.number}/").content.decode()

    assert "Failed during “Start server”" in flat(page)
    assert "Look at the port." in page
    assert "not proven to be as it was before" in page


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("Its whole log is kept: server-2.log.", "server-2.log"),
        ("server-logs-a.log is missing", "server.log"),
        ("Look at the port.", "server.log"),
    ],
)
def test_a_failure_leads_to_the_log_of_the_instance_that_it_names(
    browser: Client, make_run: MakeRun, hint: str, shown: str
) -> None:
    run = make_run(throughput_rps=1.0, outcome="failed", validity="", failure="No answer.", failure_hint=hint)
    logs = {name: keep(run, name, b"a") for name in ("server.log", "server-2.log", "server-logs-a.log")}
    page = flat(browser.get(f"/t/perf/runs/{run.number}/").content.decode())
    assert f"/artifacts/{logs[shown].pk}\">The server's log, {shown}</a>" in page


def test_files_and_logs_are_downloads_with_their_exact_bytes(browser: Client, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)
    file = keep(run, 'wrk "out".html', b"\x00<b>raw</b>", media_type="text/html")

    artifact = browser.get(f"/t/perf/runs/{run.number}/artifacts/{file.pk}")
    log = browser.get(f"/t/perf/runs/{run.number}/log")

    assert artifact.content == b"\x00<b>raw</b>"
    assert artifact.headers["Content-Disposition"] == f'attachment; filename="run-{run.number}-wrk__out_.html"'
    assert artifact.headers["X-Content-Type-Options"] == "nosniff"
    assert log.headers["Content-Disposition"].startswith("attachment")
    assert "server warning: <script>alert(1)</script>" in log.content.decode()


def test_a_queued_run_is_cancelled_from_its_page(browser: Client, make_run: MakeRun) -> None:
    run = make_run()

    answer = browser.post(f"/t/perf/runs/{run.number}/cancel", follow=True)

    run.refresh_from_db()
    assert run.outcome == "cancelled"
    assert b"Cancelled" in answer.content


def test_running_again_queues_the_same_once_more(browser: Client, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)

    answer = browser.post(f"/t/perf/runs/{run.number}/rerun")

    again = Run.objects.get(number=run.number + 1)
    assert answer.headers["Location"] == f"/t/perf/runs/{again.number}/"
    assert again.spec == run.spec


def test_samples_of_a_live_run_come_from_its_events_and_count_from_the_start_of_measuring(
    browser: Client, make_run: MakeRun
) -> None:
    run = make_run(state="measuring")

    data = browser.get(f"/t/perf/runs/{run.number}/samples?group=cpu").json()

    assert data["lines"] == [
        {"role": "sut", "channel": "cpu_set.busy_ratio", "unit": "ratio", "at_s": [1.0], "values": [0.9]}
    ]
    assert (data["live"], data["duration_s"]) == (True, 10)


def test_an_experiment_shows_its_verdict_its_matrix_and_its_plot(
    browser: Client, make_experiment: MakeExperiment
) -> None:
    experiment = make_experiment(3)

    page = browser.get(f"/t/perf/experiments/{experiment.pk}/").content.decode()

    plot = json.loads(re.search(r'<script id="ab"[^>]*>(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    assert "many is faster than few by 5.0 %" in page
    assert page.count('class="heat-cell') == 6 + 1  # the runs, and the verdict
    assert [(v["name"], len(v["repetitions"])) for v in plot["variants"]] == [("few", 3), ("many", 3)]
    assert plot["variants"][0]["low"] < plot["variants"][0]["mean"] < plot["variants"][0]["high"]
    assert "net.core.somaxconn" in page


def test_cancelling_an_experiment_cancels_its_runs(
    browser: Client, admin: Member, make_experiment: MakeExperiment
) -> None:
    experiment = make_experiment(1)
    Experiment.objects.update(state="finished")
    browser.post(f"/t/perf/experiments/{experiment.pk}/launch", {"repetitions": "2"})
    waiting = experiment.runs.filter(state="queued").count()

    browser.post(f"/t/perf/experiments/{experiment.pk}/cancel")

    assert waiting == 4
    assert not experiment.runs.filter(state="queued").exists()


def test_a_comparison_states_comparability_before_the_numbers(browser: Client, make_run: MakeRun) -> None:
    first, second = make_run(throughput_rps=1000.0), make_run(throughput_rps=900.0, validity="suspect")

    page = flat(browser.get(f"/t/perf/compare/?runs={first.number},{second.number}").content.decode())

    assert page.index("1 thing differs") < page.index("−10.0 %")
    assert "sysctl.net.core.somaxconn" in page
    assert "| Throughput | 1,000 | 900 (−10.0 %) |" in page


def test_a_comparison_keeps_the_order_asked_for_and_exports_the_same_table(browser: Client, make_run: MakeRun) -> None:
    first, second = make_run(throughput_rps=1000.0), make_run(throughput_rps=900.0)

    answer = browser.get(f"/t/perf/compare/?runs={second.number},{first.number}&format=csv")

    rows = list(csv.reader(io.StringIO(answer.content.decode())))
    assert rows[0][3:] == [f"#{second.number}", f"#{first.number}", f"#{first.number} change %"]
    assert rows[1][:5] == ["throughput_rps", "requests/s", "higher", "900.0", "1000.0"]


@pytest.mark.parametrize(
    "query, status, words",
    [
        ("", 200, "the baseline first"),
        ("?runs=1", 400, "between 2 and 10"),
        ("?runs=1,abc", 400, "is no run number"),
        ("?runs=1,999", 404, "no run #999"),
        ("?runs=" + ",".join(map(str, range(1, 12))), 400, "at most 10"),
    ],
)
def test_a_comparison_says_what_is_wrong_with_the_choice(
    query: str, status: int, words: str, browser: Client, make_run: MakeRun
) -> None:
    make_run(throughput_rps=1000.0)

    answer = browser.get(f"/t/perf/compare/{query}")

    assert answer.status_code == status
    assert words in answer.content.decode()


def test_trends_give_the_points_of_a_series_in_order(browser: Client, admin: Member, make_run: MakeRun) -> None:
    runs = [make_run(throughput_rps=1000.0 + n) for n in range(3)]
    series = Series.objects.create(
        team=admin.team, fingerprint=FINGERPRINT, application="a v1", workload="w v1", tool="wrk", last_run=runs[-1]
    )

    page = browser.get("/t/perf/trends/")
    data = browser.get(f"/t/perf/trends/points?series={series.pk}&metric=throughput_rps").json()

    assert page.content.decode().count("<figure") == 4
    assert [point["number"] for point in data["points"]] == [run.number for run in runs]
    assert browser.get(f"/t/perf/trends/points?series={series.pk}&metric=nonsense").status_code == 400
    assert browser.get(f"/t/perf/trends/points?series={series.pk}&recipe=%00").status_code == 400
    assert browser.get("/t/perf/trends/points?series=12345").status_code == 404


def test_no_page_asks_more_of_the_database_when_there_is_more_to_show(
    browser: Client, admin: Member, make_run: MakeRun, make_experiment: MakeExperiment
) -> None:
    small = make_experiment(2)
    first, second = make_run(throughput_rps=1.0), make_run(throughput_rps=2.0)
    Series.objects.create(team=admin.team, fingerprint=FINGERPRINT, application="a", workload="w", last_run=second)
    fixed = ["/t/perf/", "/t/perf/experiments/", "/t/perf/trends/", f"/t/perf/runs/{second.number}/"]
    fixed.append(f"/t/perf/compare/?runs={first.number},{second.number}")
    browser.get("/t/perf/")
    before = [queries_of(browser, url) for url in [*fixed, f"/t/perf/experiments/{small.pk}/"]]

    large = make_experiment(6)
    after = [queries_of(browser, url) for url in [*fixed, f"/t/perf/experiments/{large.pk}/"]]

    assert all(more <= few for few, more in zip(before, after, strict=True)), (before, after)
    assert max(before) <= 31


def test_pages_have_neither_inline_styles_nor_inline_scripts(
    browser: Client, admin: Member, make_run: MakeRun, make_experiment: MakeExperiment
) -> None:
    experiment = make_experiment(2)
    run = make_run(throughput_rps=2.0)
    for url in (
        "",
        f"runs/{run.number}/",
        f"experiments/{experiment.pk}/",
        "experiments/",
        "compare/?runs=1,2",
        "trends/",
    ):
        page = browser.get(f"/t/perf/{url}").content.decode()

        scripts = [
            tag for tag in re.findall(r"<script[^>]*>", page) if "src=" not in tag and "application/json" not in tag
        ]
        assert not re.search(r"<[^>]+\sstyle=", page), url
        assert not re.search(r"<[^>]+\son[a-z]+=", page), url
        assert not scripts, url
