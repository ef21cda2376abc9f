"""A small web server for measurements, in a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.sshd import free_port

ADDRESS = "127.0.0.1"
START_LIMIT_S = 600.0


@contextlib.contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """Serve one small file; yields its URL."""
    root = folder / "web"
    root.mkdir()
    (root / "ok.txt").write_text("OK\n")
    port = free_port(ADDRESS)
    argv = [sys.executable, "-m", "http.server", str(port), "--bind", ADDRESS, "--directory", str(root)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://{ADDRESS}:{port}/ok.txt"
        wait_until_it_answers(url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=10)


def wait_until_it_answers(url: str) -> None:
    """Return when the URL answers with 200; SystemExit when it does not in time."""
    end_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own URL
            if answer.status == 200:
                return
        time.sleep(0.05)
    raise SystemExit(f"{url} did not answer.")
