"""The exit status of `bh`: 0 pass, 1 fail, 2 inconclusive and 3 an error, whatever goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from benchhub.embedded import PROJECT_DIR
from clients.python.benchhub_client import Hub
from clients.python.benchhub_client.command_line import main
from tests.experiments.api.test_benchhub_ci_connection import odd  # noqa: F401 - the fixture
from tests.experiments.api.test_python_client import REPORT

BH = (sys.executable, "-m", "benchhub_client")


@pytest.fixture
def env(live_server: LiveServer, token: str) -> dict[str, str]:
    here = {"BENCHHUB_URL": live_server.url, "BENCHHUB_TOKEN": token, "PYTHONPATH": str(PROJECT_DIR / "clients/python")}
    return {**here, "PATH": os.environ["PATH"]}


@pytest.mark.parametrize("words", [[], ["watch"], ["watch", "abc"], ["nothing"], ["run", "--sut", "sut-1"]])
def test_a_command_that_cannot_be_is_an_error_and_no_verdict(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 3
    assert "usage: bh" in capsys.readouterr().err


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--help"]) == 0
    assert "usage: bh watch" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["watch", "1"], ["compare", "1", "2"]])
def test_an_answer_that_is_not_benchhubs_is_an_error_in_one_line(
    odd: Callable[[bool], str],  # noqa: F811 - the fixture
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BENCHHUB_URL", f"{odd(False)}/other-api")
    monkeypatch.setenv("BENCHHUB_TOKEN", "bh_a_b")
    assert main(words) == 3
    said = capsys.readouterr().err
    assert (said.count("\n"), "answered in a way that is not BenchHub's" in said) == (1, True), said


def test_a_file_that_cannot_be_read_or_written_is_named(hub: Hub, env: dict[str, str], tmp_path: Path) -> None:
    for words in (["import", str(tmp_path / "none.txt")], ["export", str(tmp_path / "no/runs.parquet")]):
        done = subprocess.run([*BH, *words], env=env, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, words[1] in done.stderr, done.stderr.count("\n")) == (3, True, 1), done.stderr


def test_signs_that_the_output_does_not_have_are_no_error(hub: Hub, env: dict[str, str], tmp_path: Path) -> None:
    report = tmp_path / "Prüfung.txt"
    report.write_text(REPORT.read_text())
    words = [*BH, "import", str(report), "--kind", "wrk"]
    plain = {**env, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, env=plain, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/Pr?fung.txt: run #1\n"), done.stderr


def test_output_that_is_not_taken_is_an_error_and_no_verdict(hub: Hub, env: dict[str, str]) -> None:
    for _ in range(2):
        with hub.session() as session:
            session.log(rps=1)
    for words in (["compare", "1", "2"], ["watch", "1"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([*BH, *words], env=env, stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
        assert (done.returncode, b"its output is not taken" in done.stderr) == (3, True), done.stderr
