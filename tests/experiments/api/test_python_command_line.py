"""`bh`: its exit status, 0 pass, 1 fail, 2 inconclusive and 3 an error, whatever goes wrong; imports and logins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from benchhub.embedded import PROJECT_DIR
from clients.python.benchhub_client import Hub, Trouble
from clients.python.benchhub_client.command_line import main
from clients.python.benchhub_client.login import keep_login, login_of
from experiments.models import Run as StoredRun
from tests.experiments.api.test_benchhub_ci_connection import odd  # noqa: F401 - the fixture
from tests.experiments.api.test_imports import HEAD, T0, jtl
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


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, env: dict[str, str]) -> None:
    for name in ("BENCHHUB_URL", "BENCHHUB_TOKEN"):
        monkeypatch.setenv(name, env[name])


def test_a_file_that_does_not_say_what_is_better_is_imported_with_directions(
    hub: Hub, here: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bmf.json").write_text('{"bench::a": {"speed": {"value": 3.5}, "a=b": {"value": 2}}}')
    words = ["import", "--kind", "bmf", str(tmp_path / "bmf.json")]
    assert main(words) == 3
    said = capsys.readouterr().err
    assert f"{tmp_path}/bmf.json: HTTP 422: The file does not say whether more or less is better of speed, a=b" in said
    assert said.endswith("Say it with --direction NAME=lower.\n")
    for wrong in ("speed", "speed=best", "=lower"):
        assert main([*words, "--direction", wrong]) == 3
        assert "--direction reads NAME=lower or NAME=higher, not " in capsys.readouterr().err
    assert main([*words, "--direction", "speed=higher", "--direction", "a=b=lower"]) == 0
    assert main([*words, "--direction", "*=lower"]) == 0  # other fields make another import of it
    assert capsys.readouterr().out.splitlines() == [f"{tmp_path}/bmf.json: run #{number}" for number in (1, 2)]


def test_an_import_has_the_fields_of_the_api(
    hub: Hub, here: None, stock: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "arm-1.txt").write_text("Architecture: aarch64\nCPU(s): 4\n")
    named = {
        "application": "tomcat",
        "recipe": "limits",
        "workload": "home page",
        "measured-at": "2026-01-02T03:04:05Z",
    }
    words = ["import", str(REPORT), "--kind=wrk", *(f"--{name}={value}" for name, value in named.items())]
    assert main([*words, "--machine", str(tmp_path / "arm-1.txt"), "--command", "wrk -t2 -c10 -d5s http://sut/"]) == 0
    run = StoredRun.objects.get()
    assert [str(one) for one in (run.application, run.recipe, run.workload)] == [
        "tomcat v1",
        "limits v1",
        "home page v1",
    ]
    assert run.sut_profile is not None
    assert run.sut_profile.facts["cpu.count"] == "4"
    assert run.measured_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    capsys.readouterr()
    twice = tmp_path / "twice.csv"
    twice.write_text(HEAD + jtl(T0, 40) + jtl(T0 + 240_000, 40))
    assert main(["import", "--kind=jmeter", "--split", str(twice)]) == 0
    assert capsys.readouterr().out == f"{twice}: run #2, run #3\n"


def test_of_several_files_those_that_were_stored_before_a_refusal_are_named(
    hub: Hub, here: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, after, missing = (tmp_path / name for name in ("a.txt", "b.txt", "c.txt", "d.txt"))
    for file in (good, after):
        file.write_text(REPORT.read_text())
    bad.write_text("nothing that a tool wrote")
    words = ["import", "--kind=wrk"]
    assert main([*words, str(good), str(missing)]) == 3  # no file is sent when one is not there
    told = capsys.readouterr()
    assert (told.out, str(missing) in told.err, StoredRun.objects.count()) == ("", True, 0)
    assert main([*words, str(good), str(bad), str(after)]) == 3
    told = capsys.readouterr()
    assert told.out == f"{good}: run #1\n"
    assert told.err.startswith(f"bh: {bad}: HTTP 422: ")
    assert told.err.endswith(f" Stored were {good}; the same command goes on behind them.\n")
    bad.write_text(REPORT.read_text())
    assert main([*words, str(good), str(bad), str(after)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{good}: run #1, stored before", f"{bad}: run #2", f"{after}: run #3",
    ]  # fmt: skip


@pytest.mark.parametrize("end", ["", "/", "/api/v1", "/api/v1/"])
@pytest.mark.parametrize("kept_end", ["", "/api/v1/"])
def test_a_login_is_for_one_installation_however_its_address_ends(
    end: str, kept_end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("BENCHHUB_TOKEN", raising=False)
    keep_login(f"https://bench.example.com{kept_end}", "bh_a_b")
    monkeypatch.setenv("BENCHHUB_URL", f"https://bench.example.com{end}")
    assert login_of(None, None)[1] == "bh_a_b"
    for other in (
        "https://bench.example.com.evil.example",
        "https://bench.example.com/other",
        "http://bench.example.com",
    ):
        with pytest.raises(Trouble):
            login_of(f"{other}{end}", None)


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
