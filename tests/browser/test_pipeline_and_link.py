"""A pipeline measures and gates without a browser; what it found is sent as a link to somebody without an account."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchhub.embedded import PROJECT_DIR
from tests.browser.conftest import Product
from tests.browser.test_main_job import sign_in

RUN_S = 240.0
CLIENT = PROJECT_DIR / "experiments/api/benchhub_ci.py"


def operator_says(product: Product, *words: str) -> str:
    """What a command of the operator prints, in the product's own installation."""
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    environment |= {"BENCHHUB_DATA_DIR": str(product.data_dir), "DJANGO_SETTINGS_MODULE": "benchhub.settings"}
    argv = [sys.executable, "manage.py", *words]
    done = subprocess.run(
        argv, cwd=PROJECT_DIR, env=environment, timeout=120, capture_output=True, text=True, check=False
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
    verdict = tmp_path / "verdict.json"
    gate = subprocess.run(
        [
            sys.executable, CLIENT, "run", "--application", "Tomcat 11 examples", "--recipe", "Tomcat default",
            "--workload", "HelloWorld servlet, wrk", "--sut", "sut", "--driver", "driver", "--priority", "high",
            "--label", "commit=abc1234", "--state", tmp_path / "state.json", "--json", verdict, "--timeout", str(RUN_S),
        ],
        env={"BENCHHUB_URL": product.url, "BENCHHUB_TOKEN": token[0], "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=RUN_S + 60,
        check=False,
    )  # fmt: skip
    found = json.loads(verdict.read_text())
    assert gate.returncode == {"pass": 0, "fail": 1, "inconclusive": 2}[found["outcome"]], gate.stderr
    assert "requests/s" in gate.stdout

    sign_in(page, product)
    page.goto(f"{product.url}/t/demo/runs/?q=abc1234")
    page.locator("tbody tr a").first.click()
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

    page.goto(f"{product.url}/t/demo/settings/shares/")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=re.compile("Revoke")).first.click()
    expect(page.get_by_text(re.compile("revoked", re.IGNORECASE)).first).to_be_visible()
    gone = stranger.request.get(link)
    assert gone.status == 404
    assert "This link does not work" in gone.text()
