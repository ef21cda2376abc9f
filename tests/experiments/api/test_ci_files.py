"""The ready files of docs/ci: their shell commands, taken out of them, run against a live server."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection, transaction
from pytest_django.live_server_helper import LiveServer

from clients.benchhub_ci.options import parser
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.models import Experiment, Member, Run, StoredVerdict
from experiments.registry.teams.tokens import issue
from tests import needs

FILES = Path(__file__).parents[3] / "docs" / "ci"
BUILD = {
    "GITHUB_REPOSITORY": "perf/shop", "GITHUB_RUN_ID": "7", "GITHUB_REF_NAME": "main", "HEAD_SHA": "abc",
    "CI_PROJECT_PATH": "perf/shop", "CI_PIPELINE_ID": "7", "CI_COMMIT_SHA": "abc", "CI_COMMIT_REF_NAME": "main",
    "BUILD_NUMBER": "7", "GIT_COMMIT": "abc", "GIT_BRANCH": "origin/main",
}  # fmt: skip
"""What the three systems tell a job."""
GH = """#!/bin/sh
printf '%s\\n' "$@" >gh-arguments
"""
"""GitHub's command cannot be reached from a test; what it is asked for can be seen."""


def steps_of(name: str) -> list[str]:
    """The shell commands of a ready file, one text for each shell that its system starts."""
    text = (FILES / name).read_text()
    if name == "Jenkinsfile":
        one_line, whole = re.findall(r"sh '([^'\n]+)'", text), re.findall(r"'''(.+?)'''", text, re.DOTALL)
        return [*one_line, *(one.replace("\\\n", "") for one in whole)]  # Groovy joins the lines
    data = yaml.safe_load(text)
    if "jobs" in data:
        return [
            step["run"] for step in data["jobs"]["benchhub"]["steps"] if "${{ github.event.number" not in step["run"]
        ]
    return ["\n".join(data["performance"]["script"])]


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml", "Jenkinsfile"])
def test_the_ready_files_use_commands_that_there_are(name: str) -> None:
    commands = "\n".join(steps_of(name)).replace("\\\n", " ")
    assert "/cli/benchhub-ci" in commands
    found = re.findall(r"python3 benchhub-ci ([^\n|>']+)", commands)
    assert found
    for arguments in found:
        options = parser("").parse_args(shlex.split(arguments))
        assert (options.command, options.experiment) == ("run", "Tomcat baseline")
        assert options.idempotency_key or options.state  # else a job that runs again would start another experiment


def end_the_copy(original: int, outcome: str, known: threading.Event) -> None:
    """What the lab would do, as soon as the job has started its copy."""
    try:
        while not known.wait(0.05):
            copy = Experiment.objects.exclude(pk=original).first()
            if copy is None or not copy.runs.exists():
                continue
            a, b = copy.variants.order_by("position")
            with transaction.atomic():
                Run.objects.filter(experiment=copy).update(state="finished", outcome="succeeded", validity="valid")
                Experiment.objects.filter(pk=copy.pk).update(state="finished")
                StoredVerdict.objects.create(
                    experiment=copy, baseline=a, candidate=b, metric="throughput_rps", outcome=outcome,
                    sentence="b was judged.", numbers={"estimate_pct": -12.0, "ci95_pct": [-14.0, -10.0]},
                )  # fmt: skip
            return
    finally:
        connection.close()


@pytest.mark.parametrize(
    "name, outcome, statuses",
    [
        ("github-actions.yml", "worse", (0, 1, 0)),
        ("github-actions.yml", "inconclusive", (0, 0, 0)),
        ("gitlab-ci.yml", "no_practical_difference", (0,)),
        ("gitlab-ci.yml", "inconclusive", (2,)),
        ("Jenkinsfile", "worse", (0, 1)),
    ],
)
def test_the_ready_files_gate_a_build(
    transactional_db: None, live_server: LiveServer, admin: Member, stock: dict[str, Any], tmp_path: Path,
    name: str, outcome: str, statuses: tuple[int, ...],
) -> None:  # fmt: skip
    needed = ("curl", "jq") if name == "github-actions.yml" else ("curl",) if name == "Jenkinsfile" else ()
    needs.require_program(*needed)
    sides = {key: stock[key] for key in stock if key != "workload"}
    candidates = [Candidate(side, **sides) for side in ("a", "b")]
    made = create_experiment(
        admin, name="Tomcat baseline", workload=stock["workload"], candidates=candidates, repetitions=1
    )
    _, token = issue(admin, name="ci", scopes=["read", "launch"])
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    environment = {
        **BUILD, "PATH": f"{tmp_path}:{os.environ['PATH']}", "BENCHHUB_URL": live_server.url, "BENCHHUB_TOKEN": token,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }  # fmt: skip
    ended = threading.Event()
    lab = threading.Thread(target=end_the_copy, args=(made.pk, outcome, ended))
    lab.start()
    try:
        done = [run(step, tmp_path, environment) for step in steps_of(name)]
    finally:
        ended.set()
        lab.join()
    assert tuple(one.returncode for one in done) == statuses, [one.stderr for one in done]
    copy = Experiment.objects.exclude(pk=made.pk).get()
    assert copy.labels == {"commit": "abc", "branch": "main"}
    markdown = (tmp_path / "benchhub.md").read_text()
    assert "b was judged." in markdown
    if name == "github-actions.yml":
        assert (tmp_path / "summary.md").read_text() == markdown
        verdict = json.loads((tmp_path / "verdict.json").read_text())
        assert f"\nconclusion={verdict['conclusion']}\n" in (tmp_path / "gh-arguments").read_text()
        assert bool((tmp_path / "comment.md").read_text()) == (outcome == "worse")


def run(step: str, place: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-c", step], cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
