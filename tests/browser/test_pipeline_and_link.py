"""A pipeline measures and gates without a browser; what it found is sent as a link to somebody without an account."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchhub.embedded import PROJECT_DIR
from tests.browser.conftest import Product
from tests.browser.test_main_job import sign_in

RUN_S = 600.0
EXPIRED = """
from datetime import timedelta
from django.utils import timezone
from experiments.models import ShareLink
ShareLink.objects.filter(kind="trend").update(expires_at=timezone.now() - timedelta(days=1))
"""


def operator_says(product: Product, *words: str) -> str:
    """What a command of the operator prints, in the product's own installation."""
    argv = [sys.executable, "manage.py", *words]
    done = subprocess.run(
        argv, cwd=PROJECT_DIR, env=product.environment, timeout=600, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.browser
@pytest.mark.slow
def test_a_pipeline_gates_on_a_live_run_and_a_stranger_reads_the_link(
    page: Page, product: Product, tmp_path: Path
) -> None:
    issued = operator_says(
        product, "token", "create", "--team", "demo", "--user", "demo", "--name", "ci", "--scopes", "read,launch"
    )
    token = re.search(r"bh_\w+", issued)
    assert token
    environment = {"BENCHHUB_URL": product.url, "BENCHHUB_TOKEN": token[0], "PATH": os.environ["PATH"]}

    client = tmp_path / "benchhub-ci"
    with urllib.request.urlopen(f"{product.url}/cli/benchhub-ci", timeout=300) as served:
        client.write_bytes(served.read())

    def ci(*words: str | Path) -> subprocess.CompletedProcess[str]:
        """One step of the pipeline: each is a process of its own, as in a job."""
        return subprocess.run(
            [sys.executable, client, *words],
            env=environment,
            timeout=RUN_S + 60,
            capture_output=True,
            text=True,
            check=False,
        )

    triggered = ci(
        "trigger", "--application", "Tomcat 11 examples", "--recipe", "Tomcat default", "--workload",
        "HelloWorld servlet, wrk", "--sut", "sut", "--driver", "driver", "--priority", "high",
        "--label", "commit=abc1234", "--state", tmp_path / "state.json",
    )  # fmt: skip
    assert triggered.returncode == 0, triggered.stderr
    started = triggered.stdout.strip()
    waited = ci("wait", started, "--timeout", str(RUN_S))
    assert waited.returncode == 0, waited.stderr
    verdict, comment = tmp_path / "verdict.json", tmp_path / "comment.md"
    gate = ci("gate", started, "--json", verdict, "--comment", comment)
    found = json.loads(verdict.read_text())
    assert gate.returncode == {"pass": 0, "fail": 1, "inconclusive": 2}[found["outcome"]], gate.stderr
    assert found["conclusion"] == {"pass": "success", "fail": "failure", "inconclusive": "neutral"}[found["outcome"]]
    assert "requests/s" in gate.stdout
    assert comment.read_text() == (found["markdown"] if found["comment"] else "")

    sign_in(page, product)
    page.goto(f"{product.url}/t/demo/runs/?q=abc1234")
    page.locator("tbody tr a").first.click()
    page.locator("summary.button", has_text="More").click()
    page.get_by_role("link", name="Share").click()
    page.get_by_role("button", name="Share").click()
    link = page.locator("#share-url").inner_text()

    assert page.context.browser is not None
    stranger = page.context.browser.new_context().new_page()
    stranger.goto(link)
    expect(stranger.get_by_role("heading", level=1)).to_contain_text("Run #")
    expect(stranger.get_by_text("Throughput").first).to_be_visible()
    expect(stranger.get_by_role("navigation")).to_have_count(0)
    assert stranger.context.cookies() == []
    assert stranger.request.get(f"{link}chart.png").headers["content-type"] == "image/png"
    for form, beginning in (("PDF", b"%PDF-"), ("Markdown", b"# Run "), ("CSV", b"title,")):
        with stranger.expect_download() as download:
            stranger.get_by_role("link", name=form).click()
        assert download.value.path().read_bytes().startswith(beginning)

    # A trend, too; this link's time is over before the stranger comes back.
    page.goto(f"{product.url}/t/demo/trends/")
    page.get_by_role("link", name="Share").first.click()
    page.get_by_label("It expires").select_option("1")
    page.get_by_role("button", name="Share").click()
    trend = page.locator("#share-url").inner_text()
    stranger.goto(trend)
    expect(stranger.locator("svg").first).to_be_visible()
    operator_says(product, "shell", "-v0", "-c", EXPIRED)
    expired = stranger.request.get(trend)

    page.goto(f"{product.url}/t/demo/settings/shares/")
    expect(page.locator("tr", has_text="trend of").first).to_contain_text("expired")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("tr", has_text="run #").get_by_role("button", name="Revoke").first.click()
    expect(page.get_by_text(re.compile("revoked", re.IGNORECASE)).first).to_be_visible()
    gone = stranger.request.get(link)
    assert (gone.status, expired.status) == (404, 404)
    assert "This link does not work" in gone.text()
    assert gone.text() == expired.text()
