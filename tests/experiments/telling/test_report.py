"""The report of an experiment says the same as a page, as Markdown, as CSV and by the API."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents import events as e
from agents.results.spectrum import Spectrum
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.models import Application, Experiment, Member, Recipe, Role, Run, Team, Workload
from experiments.registry.documents.versions import parse_yaml, save_version
from experiments.registry.markdown_text import block, cell
from experiments.registry.teams.tokens import issue
from experiments.telling.reports.answer import answer_of, changes_of
from experiments.telling.reports.csv_text import report_csv
from experiments.telling.reports.markdown import report_markdown
from experiments.telling.reports.plots import plots_of, ticks_between
from experiments.telling.reports.report import ExperimentReport, report_of
from tests.experiments.conftest import APPLICATION, RECIPE, WORKLOAD, ready_host
from tests.experiments.finished import finish_next, report, whole_run

BLOCKS = 5
RATES_RPS = {"base": 1000.0, "=faster|": 1100.0}
EVIL = "=faster|"


@pytest.fixture(scope="module")
def whole_experiment(django_db_setup: None, django_db_blocker: Any) -> Iterator[Experiment]:
    """One experiment for all tests of this module; nothing of it is ever committed."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield run_all()
        transaction.set_rollback(True)


@pytest.fixture
def finished(whole_experiment: Experiment, db: None) -> Experiment:
    """Two variants, the candidate 10 % faster in five blocks; in a sixth it lost its connections."""
    found: Experiment = Experiment.objects.select_related("workload", "created_by", "team").get(pk=whole_experiment.pk)
    return found


@pytest.fixture
def browser(finished: Experiment, client: Client) -> Client:
    assert finished.created_by is not None
    client.force_login(finished.created_by)
    return client


def token_of(experiment: Experiment) -> str:
    _, token = issue(Member.objects.get(team=experiment.team), name="ci", scopes=["read", "launch"])
    return token


def questioned(admin: Member, stock: dict[str, Any], **more: Any) -> Experiment:
    candidates = [
        Candidate(name, stock["application"], stock["recipe"], stock["sut"], stock["drivers"], {}, name == "base")
        for name in RATES_RPS
    ]
    return create_experiment(admin, name="# Faster?", workload=stock["workload"], candidates=candidates, **more)


def run_all() -> Experiment:
    user = get_user_model().objects.create_user("reporter")
    admin = Member.objects.create(team=Team.objects.create(slug="reports", name="Reports"), user=user, role=Role.ADMIN)
    stock = {
        "sut": ready_host(admin, "sut-1", roles="sut"),
        "drivers": (ready_host(admin, "driver-1", roles="driver"),),
        "application": save_version(admin, Application, "tomcat", APPLICATION),
        "recipe": save_version(admin, Recipe, "limits", RECIPE),
        "workload": save_version(admin, Workload, "home page", WORKLOAD),
    }
    experiment = questioned(admin, stock, question="Is it <b>faster</b>?", repetitions=BLOCKS + 1)
    for run in launch_experiment(admin, experiment):
        assert run.variant is not None
        name, block_number = run.variant.name, run.block or 0
        if name == EVIL and block_number == 0:
            finish_next(whole_run(report(errors_connect=1280)))
            continue
        finish_next(spectra(whole_run(report(RATES_RPS[name] * (1 + 0.002 * (block_number % 3))))))
    return experiment


def spectra(events: list[e.AnyEvent]) -> list[e.AnyEvent]:
    found = Spectrum((1.0, 2.0, 5.0), (8_000, 9_900, 10_000), exact=True)
    return [
        e.LoadReported(0, True, 0, "output", "00", event.report, None, found)
        if isinstance(event, e.LoadReported)
        else event
        for event in events
    ]


def made(experiment: Experiment) -> ExperimentReport:
    return report_of(experiment, base_url="https://bench.test")


def test_the_answer_is_the_verdict_on_the_primary_metric(finished: Experiment) -> None:
    found = made(finished)
    assert found.answer.startswith(f"Throughput: {EVIL} is faster than base by 10.0 %")
    assert found.metrics[0].decides
    assert found.primary.name == "throughput_rps"


def test_of_many_candidates_the_answer_names_those_with_the_largest_changes(finished: Experiment) -> None:
    one = changes_of(finished)[0]
    many = [replace(one, candidate=f"v{number}", estimate_pct=float(number)) for number in range(1, 9)]

    answer = answer_of(finished, many, list(finished.runs.all()))

    assert re.findall(r"v\d", answer) == ["v8", "v7", "v6", "v5", "v4"]
    assert "and 3 others are better" in answer


def test_every_variant_and_metric_has_its_mean_its_interval_and_its_change(finished: Experiment) -> None:
    found = made(finished)
    throughput = found.metrics[0]
    base, faster = throughput.figures
    assert base.is_baseline
    assert base.change is None
    assert base.mean is not None
    assert base.mean.n == BLOCKS + 1
    assert faster.mean is not None
    assert faster.mean.n == BLOCKS
    assert faster.mean.ci95 is not None
    assert faster.change is not None
    assert faster.change.ci95_pct is not None
    assert {"throughput_rps", "latency_p99_ms", "sut_cpu_ratio"} <= {one.metric.name for one in found.metrics}


def test_what_did_not_count_is_named_with_its_reason(finished: Experiment) -> None:
    (remark,) = made(finished).left_out
    assert remark.variant == EVIL
    assert remark.what == "invalid"
    assert "1280" in " ".join(remark.sentences).replace(",", "")


def test_the_histograms_of_a_variants_repetitions_are_added_up(finished: Experiment) -> None:
    base, faster = made(finished).curves
    assert (base.runs, base.samples) == (BLOCKS + 1, 10_000 * (BLOCKS + 1))
    assert (faster.runs, faster.samples) == (BLOCKS, 10_000 * BLOCKS)
    points = {point.percentile: point.value_ms for point in base.points}
    assert (points[50.0], points[90.0], points[99.5]) == (1.0, 2.0, 5.0)
    assert max(points) == 99.975  # 60,000 samples carry no more


def test_the_documents_of_a_report_make_the_same_experiment_again(finished: Experiment, client: Client) -> None:
    found = made(finished)
    body = parse_yaml(found.repeat.experiment_yaml)
    assert [variant["name"] for variant in body["variants"]] == list(RATES_RPS)
    assert {one.kind for one in found.repeat.documents} == {"workload", "application", "recipe"}
    assert [sorted(one.variants) for one in found.repeat.blocks] == [sorted(RATES_RPS)] * (BLOCKS + 1)
    answer = client.post(
        "/api/v1/experiments",
        data=found.repeat.experiment_yaml,
        content_type="application/yaml",
        headers={"Authorization": f"Bearer {token_of(finished)}"},
    )
    assert answer.status_code == 201, answer.content


def test_names_cannot_break_out_of_the_csv_or_the_markdown(finished: Experiment) -> None:
    found = made(finished)
    rows = list(csv.DictReader(io.StringIO(report_csv(found))))
    assert {row["variant"] for row in rows} == {"base", "'=faster|"}
    assert len(rows) == 2 * len(found.metrics)
    text = report_markdown(found, url="https://bench.test/report/")
    assert text.startswith("# \\# Faster?\n")
    assert "Is it \\<b\\>faster\\</b\\>?" in text
    tables = [line for line in text.splitlines() if line.startswith("| =faster")]
    assert tables
    assert all(line.startswith("| =faster\\| |") for line in tables)


@pytest.mark.parametrize("text", ["plain", "a ``` b", "````"])
def test_a_block_ends_where_it_should(text: str) -> None:
    first, *_, last = block(text).splitlines()
    assert first == last
    assert first not in text


def test_a_cell_is_one_line() -> None:
    assert cell("a\nb | [c](d) ![e](f) &lt;") == "a b \\| \\[c\\](d) \\!\\[e\\](f) \\&lt;"


def test_plots_are_drawn_from_what_counts(finished: Experiment) -> None:
    found = made(finished)
    plots = {plot.name: plot for plot in plots_of(found)}
    assert list(plots) == ["throughput_rps", "changes", "percentiles"]
    (base, faster) = plots["throughput_rps"].rows  # type: ignore[union-attr]
    assert (len(base.dots), len(faster.dots)) == (BLOCKS + 1, BLOCKS)
    assert None not in (base.middle_x, faster.middle_x)
    assert max(dot.x for dot in base.dots) < min(dot.x for dot in faster.dots)


@pytest.mark.parametrize(
    "low, high, ticks",
    [(0, 10, [0, 2, 4, 6, 8, 10]), (0.93, 1.06, [0.95, 0.975, 1.0, 1.025, 1.05]), (-4, 4, [-4, -2, 0, 2, 4])],
)
def test_ticks_are_round_numbers(low: float, high: float, ticks: list[float]) -> None:
    assert ticks_between(low, high) == pytest.approx(ticks)


def test_a_draft_and_a_live_experiment_have_a_report_too(admin: Member, stock: dict[str, Any], client: Client) -> None:
    client.force_login(admin.user)
    experiment = questioned(admin, stock)
    assert made(experiment).answer == "No answer yet: the experiment has not been launched."
    launch_experiment(admin, experiment)
    finish_next()
    found = made(experiment)
    assert "1 of 10 runs" in found.answer
    assert client.get(page(experiment)).status_code == 200


def page(experiment: Experiment, suffix: str = "report/") -> str:
    return f"/t/{experiment.team.slug}/experiments/{experiment.pk}/{suffix}"


def test_the_page_holds_its_plots_and_needs_no_script(finished: Experiment, browser: Client) -> None:
    html = browser.get(page(finished)).content.decode()
    assert html.count('<svg xmlns="http://www.w3.org/2000/svg" class="plot"') == 3
    assert "Is it &lt;b&gt;faster&lt;/b&gt;?" in html
    assert " style=" not in html
    assert "data-chart" not in html


@pytest.mark.parametrize("name", ["throughput_rps", "changes", "percentiles"])
def test_each_plot_is_an_svg_of_its_own(finished: Experiment, browser: Client, name: str) -> None:
    answer = browser.get(page(finished, f"report/{name}.svg"))
    assert answer["Content-Type"] == "image/svg+xml"
    root = ElementTree.fromstring(answer.content)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert browser.get(page(finished, "report/nothing.svg")).status_code == 404


@pytest.mark.parametrize(
    "suffix, content_type", [("report.md", "text/markdown; charset=utf-8"), ("report.csv", "text/csv; charset=utf-8")]
)
def test_the_same_address_with_a_suffix_is_a_file(
    finished: Experiment, browser: Client, suffix: str, content_type: str
) -> None:
    answer = browser.get(page(finished, suffix))
    assert answer["Content-Type"] == content_type
    if suffix == "report.md":
        assert re.findall(r"!\[.*\]\(http://testserver/t/.*/report/throughput_rps\.svg\)", answer.content.decode())


def test_the_api_gives_all_four_forms(finished: Experiment, browser: Client) -> None:
    token = token_of(finished)
    address = f"/api/v1/experiments/{finished.pk}/report"

    def get(wanted: str = "") -> Any:
        return browser.get(address + wanted, headers={"Authorization": f"Bearer {token}"})

    data = json.loads(get().content)
    assert data["answer"] == made(finished).answer
    assert data["metrics"][0]["figures"][1]["change"]["ci95_pct"][0] > 0
    assert get("?format=csv").content.decode() == report_csv(made(finished))
    assert get("?format=markdown")["Content-Type"].startswith("text/markdown")
    assert get("?format=pdf").content.startswith(b"%PDF")
    assert get("?format=odt").status_code == 422


def test_more_runs_need_no_more_queries(finished: Experiment) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            made(finished)
        return len(captured)

    before = queries()
    for run in list(finished.runs.all()):
        Run.objects.filter(pk=run.pk).update(labels={"again": "1"})
        run.pk, run.number = None, run.number + 1000
        run.block = (run.block or 0) + 100
        run.save()
    assert queries() == before
