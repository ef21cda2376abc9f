"""The run page of a load tool that records every request."""

from __future__ import annotations

from django.test import Client

from agents.drivers.jmeter.jtl.files import read_jtl_text
from agents.drivers.reading import read_report
from agents.events import LoadPart, LoadReported
from experiments.asking.intake.imports import import_reports
from experiments.models import Member
from experiments.registry.metrics.vocabulary import figures
from tests.agents.recorded import CASES
from tests.frontend.conftest import MakeRun
from tests.frontend.test_forms_access import address


def test_the_page_lists_labels_and_failures_escaped_and_not_for_other_tools(
    browser: Client, admin: Member, make_run: MakeRun
) -> None:
    text = (CASES / "jmeter" / "faulty.csv").read_text().replace(",drops,", ",<b>drops</b>,")
    report = read_jtl_text(text).to_json()
    run = make_run(throughput_rps=300.0, events=(LoadReported(0, True, 0, "", "", report),))
    page = browser.get(address("run", admin.team, run.number)).content.decode()
    assert "Requests by label" in page
    assert "&lt;b&gt;drops&lt;/b&gt;" in page
    assert "Failed requests" in page
    assert "Non HTTP response code: java.net.SocketTimeoutException" in page
    other = make_run(throughput_rps=300.0)
    assert "Requests by label" not in browser.get(address("run", admin.team, other.number)).content.decode()


def test_the_page_lists_figures_of_the_benchmarks_own_and_the_notes(
    browser: Client, admin: Member, make_run: MakeRun
) -> None:
    text = '{"throughput_rps": 300, "gc_pause_ms": {"value": 12.5, "unit": "<ms>", "direction": "lower"}}'
    report = {**read_report("command", text).to_json(), "notes": ["no p99: the histograms are too coarse for it"]}
    run = make_run(throughput_rps=300.0, events=(LoadReported(0, True, 0, "", "", report),))
    page = browser.get(address("run", admin.team, run.number)).content.decode()
    assert "gc_pause_ms" in page
    assert "&lt;ms&gt;" in page
    assert "No p99: the histograms are too coarse for it." in page
    assert "Each load tool" not in page
    assert figures(report) == {"throughput_rps": 300.0, "gc_pause_ms": 12.5}


def test_the_page_lists_what_each_instance_was_asked(browser: Client, admin: Member, make_run: MakeRun) -> None:
    report = read_report("command", '{"throughput_rps": 300, "requests": 3000, "errors_status": 7}').to_json()
    parts = tuple(LoadPart(f"http://sut:808{number}/", 0, report) for number in range(2))
    run = make_run(throughput_rps=600.0, events=(LoadReported(0, True, 0, "", "", report, parts=parts),))
    page = browser.get(address("run", admin.team, run.number)).content.decode()
    assert "Each load tool" in page
    assert "http://sut:8081/" in page


def test_an_imported_run_shows_figures_of_the_benchmarks_own(browser: Client, admin: Member) -> None:
    text = '{"throughput_rps": 300, "scaled_throughput": {"value": 1.9, "unit": "x one CPU", "direction": "higher"}}'
    (run,) = import_reports(admin, kind="command", text=text)
    page = browser.get(address("run", admin.team, run.number)).content.decode()
    assert "scaled_throughput" in page
    assert "x one CPU" in page
    assert run.metrics["scaled_throughput"] == 1.9
