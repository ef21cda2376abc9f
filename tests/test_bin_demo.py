"""bin/demo as an operator meets it; the start itself is what the demonstration's own run proves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchhub.embedded import PROJECT_DIR
from benchhub.supervisor import Lock
from lab.demo_hosts import MARK

HOLDER = """
import signal, sys
from pathlib import Path
from benchhub.supervisor import Lock
lock = Lock(Path(sys.argv[1]))
lock.take("http://127.0.0.1:8123/")
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("held", flush=True)
signal.sigwait({signal.SIGTERM})
"""


def demo(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(data.parent),
        "BENCHHUB_DATA_DIR": str(data),
        "BENCHHUB_VENV": str(data.parent / "venv"),
    }
    return subprocess.run(
        [PROJECT_DIR / "bin" / "demo", *arguments],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "demo data"


def announce(data: Path) -> None:
    (data / "demo").mkdir(parents=True)
    (data / "demo" / "announcement").write_text("BenchHub is ready.\n")


@pytest.mark.parametrize(
    "option, status, sentence",
    [
        ("--status", 1, "BenchHub is not running."),
        ("--stop", 0, "BenchHub is not running."),
        ("--reset", 0, "There is no data to delete."),
    ],
)
def test_asking_when_nothing_runs_changes_nothing(data: Path, option: str, status: int, sentence: str) -> None:
    result = demo(data, option)

    assert (result.returncode, result.stderr) == (status, "")
    assert sentence in result.stdout
    assert not data.exists()


@pytest.mark.parametrize("arguments", [["--port"], ["--port", "http"], ["--port", "65536"], ["--prot=1"], ["start"]])
def test_an_argument_that_makes_no_sense_starts_nothing(data: Path, arguments: list[str]) -> None:
    result = demo(data, *arguments)

    assert result.returncode == 1
    assert arguments[0].partition("=")[0] in result.stderr
    assert not data.exists()


def test_a_second_start_shows_where_the_first_one_runs_and_installs_nothing(data: Path) -> None:
    lock = Lock(data)
    assert lock.take("http://127.0.0.1:8123/") is None
    announce(data)

    second, status = demo(data), demo(data, "--status")

    assert [(second.returncode, second.stdout), (status.returncode, status.stdout)] == [(0, "BenchHub is ready.\n")] * 2
    assert not (data.parent / "venv").exists()


def test_a_start_that_is_not_ready_yet_says_so(data: Path) -> None:
    lock = Lock(data)
    assert lock.take("http://127.0.0.1:8123/") is None

    result = demo(data, "--status")

    assert result.returncode == 1
    assert result.stdout.startswith(f"BenchHub is starting (process {os.getpid()})")


def test_stop_ends_the_supervisor_and_what_is_left_on_the_hosts(data: Path) -> None:
    announce(data)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(data)], cwd=PROJECT_DIR, stdout=subprocess.PIPE, start_new_session=True
    )
    left = subprocess.Popen(["sleep", "300"], env={MARK: f"{data}/demo/sut"}, start_new_session=True)
    elsewhere = subprocess.Popen(["sleep", "300"], env={MARK: f"{data}-other/demo/sut"}, start_new_session=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"

        result = demo(data, "--stop")

        assert (result.returncode, result.stdout) == (0, "BenchHub has stopped.\n")
        assert holder.wait(60) == 0
        assert left.wait(60) == -signal.SIGTERM
        assert elsewhere.poll() is None
        assert not (data / "demo" / "announcement").exists()
    finally:
        for process in (holder, left, elsewhere):
            process.kill()
            process.wait()
        holder.stdout.close()


def test_reset_deletes_only_what_the_demo_made_itself(data: Path) -> None:
    data.mkdir()
    (data / "fernet_keys").write_text("an installation's")

    refused = demo(data, "--reset")
    (data / ".made-by-bin-demo").touch()
    deleted = demo(data, "--reset")

    assert refused.returncode == 1
    assert "remove it yourself" in refused.stderr
    assert deleted.returncode == 0
    assert not data.exists()
