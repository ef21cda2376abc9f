"""benchhub-ci as a process of its own against a live server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from clients.benchhub_ci.command_line import main
from clients.benchhub_ci.options import parser
from experiments.api.cli import archive
from experiments.models import Experiment, Member, Run, StoredVerdict
from experiments.registry.teams.tokens import issue
from tests.experiments.api.ci_client import NAMES, Ci, run_ci
from tests.sshd import eventually


@pytest.mark.parametrize(
    "outcome, validity, status, title",
    [
        ("succeeded", "valid", 0, "pass"),
        ("succeeded", "invalid", 1, "fail"),
        ("succeeded", "suspect", 2, "inconclusive"),
        ("failed", "", 3, "error"),
    ],
)
def test_a_run_is_triggered_waited_for_and_judged(ci: Ci, outcome: str, validity: str, status: int, title: str) -> None:
    started = ci("trigger", *NAMES, "--param", "nofile=4096", "--label", "commit=abc", "--idempotency-key", "k")
    assert (started.returncode, started.stdout) == (0, "run:1\n"), started.stderr
    again = ci("trigger", *NAMES, "--param", "nofile=4096", "--label", "commit=abc", "--idempotency-key", "k")
    assert again.stdout == "run:1\n"
    unfinished = ci("wait", "run:1", "--timeout", "0")
    assert (unfinished.returncode, "benchhub-ci wait run:1" in unfinished.stderr) == (3, True)
    run = Run.objects.get()
    assert run.spec is not None
    assert (run.labels, run.spec["recipe"]["parameters"]) == ({"commit": "abc"}, {"nofile": 4096})
    Run.objects.update(state="finished", outcome=outcome, validity=validity, metrics={"throughput_rps": 10.0})
    assert ci("wait", "run:1").stdout == "run:1\n"
    judged = ci("gate", "run:1")
    assert judged.returncode == status
    assert title in judged.stdout.splitlines()[0]


def test_priority_and_retries_are_asked_for_at_the_start(ci: Ci) -> None:
    assert ci("trigger", *NAMES, "--priority", "low", "--retries", "2").returncode == 0
    run = Run.objects.get()
    assert (run.priority, run.retries_left) == (-1, 2)
    assert ci("trigger", *NAMES, "--priority", "urgent").returncode == 3


def test_an_experiment_is_found_by_name_and_its_copy_judged(ci: Ci, admin: Member, stock: dict[str, Any]) -> None:
    from experiments.asking.launching.choices import Candidate
    from experiments.asking.launching.creating import create_experiment

    hosts = stock["sut"], stock["drivers"]
    candidates = [Candidate(name, stock["application"], stock["recipe"], *hosts) for name in ("a", "b")]
    create_experiment(admin, name="why not", workload=stock["workload"], candidates=candidates, repetitions=1)
    started = ci("trigger", "--experiment", "why not", "--label", "commit=abc")
    assert started.returncode == 0, started.stderr
    copied = Experiment.objects.latest("id")
    assert started.stdout == f"experiment:{copied.pk}\n"
    assert copied.labels == {"commit": "abc"}
    Run.objects.update(state="finished", outcome="succeeded", validity="valid")
    copied.state = "finished"
    copied.save()
    a, b = copied.variants.order_by("position")
    StoredVerdict.objects.create(
        experiment=copied, baseline=a, candidate=b, metric="throughput_rps", outcome="worse", sentence="b is worse.",
        numbers={"estimate_pct": -12.0, "ci95_pct": [-14.0, -10.0]},
    )  # fmt: skip
    judged = ci("gate", started.stdout.strip())
    assert (judged.returncode, "b is worse." in judged.stdout) == (1, True)
    assert ci("trigger", "--experiment", "unknown").returncode == 3


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("trigger", "--application=x"), "Give --experiment"),
        (("trigger", "--experiment=1", "--sut=x", "--param=a=1"), "leave out --sut, --param"),
        (("trigger", *NAMES[:4], "--driver=nope"), "field: drivers.0"),
        (("trigger", *NAMES, "--param", "nofile=many"), "not of type int"),
        (("trigger", *NAMES, "--label", "x"), "key=value"),
        (("trigger", *NAMES, "--idempotency-key", "a\nb"), "printable ASCII"),
        (("gate", "run:99"), "no run #99"),
        (("wait", "run:99", "--timeout=nan"), "invalid seconds value"),
        (("wait", "run:99", "--timeout=inf"), "no run #99"),
        (("gate", "bogus"), "An ID is"),
        (("gate",), "required"),
        (("nothing",), "invalid choice"),
    ],
)
def test_a_command_that_cannot_be_is_an_error_and_no_verdict(ci: Ci, arguments: tuple[str, ...], said: str) -> None:
    done = ci(*arguments)
    assert (done.returncode, said in done.stderr, done.stdout) == (3, True, ""), done.stderr


def test_a_wrong_token_is_not_tried_again(live_server: LiveServer, script: Path) -> None:
    done = run_ci(script, live_server.url, "bh_x_y", "gate", "run:1")
    assert (done.returncode, "HTTP 401" in done.stderr, "is BENCHHUB_TOKEN whole" in done.stderr) == (3, True, True)


def test_a_check_says_what_the_token_may_do(ci: Ci, live_server: LiveServer, admin: Member, script: Path) -> None:
    whole = ci("check")
    assert (whole.returncode, "ada, admin of Performance; scopes: launch, read" in whole.stdout) == (0, True)
    _, text = issue(admin, name="reader", scopes=["read"])
    lacking = run_ci(script, live_server.url, text, "check")
    assert (lacking.returncode, "has no scope launch" in lacking.stderr) == (3, True)


def test_output_that_is_not_taken_is_an_error_and_no_verdict(
    live_server: LiveServer, admin: Member, script: Path
) -> None:
    _, token = issue(admin, name="ci", scopes=["read", "launch"])
    given = {"PATH": os.environ["PATH"], "BENCHHUB_URL": live_server.url, "BENCHHUB_TOKEN": token}
    for stream, status in (("stdout", 3), ("stderr", 0)):
        with open("/dev/full", "w") as full, open(os.devnull, "w") as taken:
            out, err = (full, taken) if stream == "stdout" else (taken, full)
            words = [sys.executable, "-I", str(script), "check"]
            done = subprocess.run(words, env=given, stdout=out, stderr=err, check=False)
        assert done.returncode == status, stream


def test_what_was_started_is_cancelled_by_its_id(ci: Ci) -> None:
    started = ci("trigger", *NAMES).stdout.strip()
    assert ci("cancel", started).returncode == 0
    assert Run.objects.get().outcome == "cancelled"
    again = ci("cancel", started)
    assert (again.returncode, "HTTP 409" in again.stderr) == (3, True), again.stderr


def test_a_job_that_runs_again_finds_what_it_started(ci: Ci, tmp_path: Path) -> None:
    state = str(tmp_path / "state.json")
    starts = [ci("trigger", *NAMES, "--state", state) for _ in range(2)]
    assert [done.stdout for done in starts] == ["run:1\n", "run:1\n"], starts[1].stderr
    assert "Going on with run:1" in starts[1].stderr
    # Ended between the request and its answer: only the key is known, and the same key starts nothing twice.
    said = json.loads(Path(state).read_text())
    Path(state).write_text(json.dumps({**said, "started": ""}))
    assert ci("trigger", *NAMES, "--state", state).stdout == "run:1\n"
    assert ci("trigger", *NAMES, "--label", "commit=other", "--state", state).stdout == "run:2\n"
    Path(state).write_text("[]")
    assert (broken := ci("trigger", *NAMES, "--state", state)).returncode == 3
    assert "is no state file" in broken.stderr
    assert Run.objects.count() == 2


def test_the_gate_takes_rules_and_writes_files(ci: Ci, admin: Member, stock: dict[str, Any], tmp_path: Path) -> None:
    from experiments.asking.launching.choices import Candidate
    from experiments.asking.launching.creating import create_experiment

    sides = {key: stock[key] for key in stock if key != "workload"}
    candidates = [Candidate(name, **sides) for name in ("a", "b")]
    made = create_experiment(admin, name="q", workload=stock["workload"], candidates=candidates, repetitions=1)
    Experiment.objects.update(state="finished")
    files = ("--comment", str(tmp_path / "comment.md"), "--json", str(tmp_path / "verdict.json"))
    what = f"experiment:{made.pk}"
    for more, status in (((), 2), (("--inconclusive", "pass"), 0), (("--inconclusive", "fail"), 1)):
        done = ci("gate", what, *more, *files)
        assert done.returncode == status, done.stderr
        verdict = json.loads((tmp_path / "verdict.json").read_text())
        comment = (tmp_path / "comment.md").read_text()
        assert comment == (verdict["markdown"] if status == 1 else "")
        assert done.stdout.strip() == verdict["markdown"].strip()
    a, b = made.variants.order_by("position")
    for candidate in (a, b):
        sample = {
            "experiment": made,
            "variant": candidate,
            "state": "finished",
            "outcome": "succeeded",
            "validity": "valid",
        }
        for block in range(5):
            rate = (1000.0 if candidate == a else 950.0) + block
            Run.objects.create(
                team=admin.team, number=100 + 10 * candidate.position + block, block=block, recipe=stock["recipe"],
                metrics={"throughput_rps": rate}, **sample,
            )  # fmt: skip
    assert ci("gate", what, "--margin", "3").returncode == 1
    assert ci("gate", what, "--margin", "20").returncode == 0
    assert "No comparable run" in ci("gate", what, "--baseline", "branch:main").stdout
    for more, said in (
        (("--margin", "200"), "field: margin_pct"),
        (("--metric", "speed"), "field: metric"),
        (("--baseline", "main"), "field: baseline"),
    ):
        done = ci("gate", what, *more)
        assert (done.returncode, said in done.stderr) == (3, True), done.stderr
    assert "a single run is only checked" in ci("gate", "run:1", "--metric", "throughput_rps").stderr


@pytest.mark.parametrize("cancels", [False, True])
def test_a_job_that_is_ended_leaves_its_run_or_cancels_it(
    transactional_db: None, live_server: LiveServer, admin: Member, stock: dict[str, Any], script: Path, cancels: bool
) -> None:
    _, text = issue(admin, name="ci", scopes=["read", "launch"])
    job = subprocess.Popen(
        [sys.executable, "-I", str(script), "run", *NAMES, *(["--cancel-on-interrupt"] if cancels else [])],
        env={"PATH": os.environ["PATH"], "BENCHHUB_URL": live_server.url, "BENCHHUB_TOKEN": text},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert job.stderr is not None
    for line in job.stderr:
        if line.startswith("Started run:1"):
            break
    job.send_signal(signal.SIGTERM)
    said = job.stderr.read()
    assert job.wait(timeout=300) == 3
    assert ("run:1 is cancelled" in said, "run:1 goes on" in said) == (cancels, not cancels), said
    assert Run.objects.get().outcome == ("cancelled" if cancels else "")
    # The server still waits for the run on behalf of the job; it must not do so when the database is gone.
    Run.objects.update(state="finished", outcome="cancelled")
    asyncio.run(eventually(lambda: not waiting(), within_s=120))


def waiting() -> list[str]:
    """Requests that the live server still works on."""
    return [thread.name for thread in threading.enumerate() if "process_request" in thread.name]


def test_the_installation_serves_one_file_that_runs(client: Client, script: Path, tmp_path: Path) -> None:
    answer = client.get("/cli/benchhub-ci")
    assert answer.content == script.read_bytes() == archive.__wrapped__()  # made again, the same
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert client.get("/cli/benchhub-ci", headers={"If-None-Match": answer["ETag"]}).status_code == 304
    alone = tmp_path / "benchhub-ci"
    alone.write_bytes(answer.content)
    alone.chmod(0o755)
    for command in ([str(alone)], [sys.executable, "-I", str(alone)]):
        said = subprocess.run([*command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert said.startswith(f"benchhub-ci {settings.VERSION} (build ")


def test_the_help_of_every_command_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    names = re.findall(r"^    ([a-z]+)  ", parser("0").format_help(), re.MULTILINE)
    assert names == ["check", "trigger", "wait", "gate", "run", "bisect", "tune", "cancel", "profile"]
    for name in names:
        assert main([name, "--help"]) == 0
        assert f"benchhub-ci {name}" in capsys.readouterr().out.partition("example:")[2]
