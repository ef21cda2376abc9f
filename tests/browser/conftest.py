"""The whole product for a browser: `manage.py demo` on a data directory of its own, and Debian's Chromium."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from benchhub.embedded import PROJECT_DIR
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.tomcat_install import ARCHIVE

READY_S = 600.0
LOOK_MS = 180_000.0
"""What a page may take to show something, on a machine that is busy with the other tests."""
STOP_S = 300.0
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
# As root there is no sandbox; the rest keeps Chromium from looking for its maker's servers.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]

expect.set_options(timeout=LOOK_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First the test that ends the demonstration's experiment, as a person may: it loads all CPUs for minutes."""
    items.sort(key=lambda item: item.path.name != "test_main_job.py")


@dataclass(frozen=True)
class Product:
    """A running demonstration."""

    url: str
    data_dir: Path
    process: subprocess.Popen[bytes]

    @property
    def environment(self) -> dict[str, str]:
        """In which commands of its operator run."""
        return _environment(self.data_dir)


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    """BenchHub with two hosts and Tomcat; everything is stopped and removed afterwards."""
    needs.require(ARCHIVE.is_file(), f"the Tomcat archive {ARCHIVE.name}", needs.TOMCAT)
    data_dir = Path(tempfile.mkdtemp(prefix="benchhub-browser-"))
    port = free_port()
    log = data_dir / "demo.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--port", str(port), "--archive", str(ARCHIVE)],
            cwd=PROJECT_DIR,
            env=_environment(data_dir),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_it_answers(url, process, log)
        yield Product(url, data_dir, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a new browser profile; errors of its console fail the test."""
    executable = next(filter(None, map(shutil.which, CHROMIUM)), None)
    needs.require(executable, "chromium", "apt-get install chromium")
    problems: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        opened = browser.new_page(viewport={"width": 1360, "height": 900})
        opened.set_default_timeout(LOOK_MS)
        opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        opened.on("pageerror", lambda error: problems.append(str(error)))
        yield opened
        if place := os.environ.get("BENCHHUB_SCREENSHOT"):
            opened.screenshot(path=place, full_page=True)
        browser.close()
    assert problems == []


def _environment(data_dir: Path) -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    return found | {"BENCHHUB_DATA_DIR": str(data_dir), "DJANGO_SETTINGS_MODULE": "benchhub.settings"}


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=300) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(log.read_text())
