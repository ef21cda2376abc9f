"""The run page of a load tool that records every request."""

from __future__ import annotations

from django.test import Client

from agents.drivers.jtl import read_jtl_text
from agents.events import LoadReported
from experiments.models import Member
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
