"""Profiles over the API and by benchhub-ci: sent in any form, listed, given back in three, compared."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from agents.profiles.reading import read_profile
from experiments.api.plumbing.examples import BODIES
from experiments.models import AuditEntry, Member, Run, RunProfile, Team
from tests.agents.profiles.samples import folded
from tests.experiments.api.ci_client import Ci
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import NAMES

CASES = Path(__file__).parents[2] / "agents" / "cases" / "profiles"
FILES = {
    "collapsed": "collapsed-async-profiler.txt",
    "cpuprofile": "cpuprofile-node.cpuprofile",
    "otlp": "otlp-jfr-converter.otlp",
    "perf-script": "perf-script-native.txt",
    "pprof": "pprof-go.pb.gz",
    "speedscope": "speedscope-pyspy.json",
}


@pytest.fixture
def run(api: ApiClient, stock: dict[str, Any]) -> Run:
    assert api.post("/runs", NAMES).status_code == 202
    Run.objects.update(
        state="finished", outcome="succeeded", validity="valid", throughput_rps=1000.0,
        metrics={"throughput_rps": 1000.0, "cpu_ms_per_request": 0.5},
    )  # fmt: skip
    return Run.objects.get()


def sent(file: str, **more: Any) -> dict[str, Any]:
    return {"profiler": "p", "content": base64.b64encode((CASES / file).read_bytes()).decode(), **more}


def test_every_form_is_known_by_its_content_and_comes_back_in_three(api: ApiClient, run: Run) -> None:
    for form, file in FILES.items():
        answer = api.post(f"/runs/{run.number}/profiles", sent(file, name=form, event="cpu"))
        assert answer.status_code == 201, answer.content
        stored = answer.json()
        assert (stored["form"], stored["cost_us"]) == (form, 500.0)  # by the figures of the run
        before = folded(read_profile((CASES / file).read_bytes()))
        for wanted in ("collapsed", "speedscope", "pprof"):
            given = api.get(f"/runs/{run.number}/profiles/{form}?format={wanted}")
            assert given.status_code == 200
            back = read_profile(given.content, wanted)
            assert back.weight == pytest.approx(sum(before.values()), rel=1e-3)
    assert [one["name"] for one in api.get(f"/runs/{run.number}/profiles").json()] == sorted(FILES)
    kept = api.get(f"/runs/{run.number}/artifacts/profile-pprof.pb.gz")
    assert kept.content == (CASES / FILES["pprof"]).read_bytes()
    assert api.get("/functions?before=1&after=1").status_code == 200
    entry = AuditEntry.objects.filter(action="run.profile").latest("pk")
    assert entry.subject == "run #1"


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"content": "no base64!"}, 422, "content"),
    ({"content": base64.b64encode(b"FLR\\0").decode()}, 422, "file"),
    ({"content": "A" * 9_400_000}, 422, "content"),
    ({"start_s": 1.0}, 422, "end_s"),
    ({"start_s": 5.0, "end_s": 2.0}, 422, "end_s"),
    ({"role": "database"}, 422, "role"),
    ({"form": "dtrace"}, 422, "form"),
    ({"name": "../x"}, 422, "name"),
]


@pytest.mark.parametrize("change, status, field", REFUSED)
def test_what_cannot_be_stored_is_refused_with_the_field(
    api: ApiClient, run: Run, change: dict[str, Any], status: int, field: str
) -> None:
    answer = api.post(f"/runs/{run.number}/profiles", BODIES["add_run_profile"] | change)
    assert (answer.status_code, answer.json()["field"]) == (status, field), answer.content
    assert not RunProfile.objects.exists()


def test_the_same_name_again_a_live_run_and_a_full_quota_are_conflicts(api: ApiClient, run: Run, admin: Member) -> None:
    body = BODIES["add_run_profile"]
    assert api.post("/runs/1/profiles", body).status_code == 201
    assert api.post("/runs/1/profiles", body).status_code == 409
    Team.objects.filter(pk=admin.team_id).update(artifact_bytes=1, quota_artifact_bytes=1)
    assert api.post("/runs/1/profiles", body | {"name": "other"}).status_code == 409
    Run.objects.update(state="measuring")
    assert api.post("/runs/1/profiles", body | {"name": "live"}).status_code == 409


def test_benchhub_ci_attaches_a_profile(ci: Ci, run: Run, tmp_path: Path) -> None:
    file = str(CASES / FILES["collapsed"])
    given = (
        "--profiler",
        "async-profiler",
        "--event",
        "cpu",
        "--engine",
        "perf",
        "--window",
        "2-8",
        "--requests",
        "6000",
    )
    for _ in range(2):  # a job that runs again sends nothing twice
        done = ci("profile", "run:1", file, *given, "--cpu-time", "1.5")
        assert (done.returncode, done.stdout) == (0, "async-profiler-cpu\n"), done.stderr
    stored = run.profiles.get()
    assert (stored.start_s, stored.end_s, stored.cost_us) == (2.0, 8.0, 250.0)
    recording = tmp_path / "busy.jfr"
    recording.write_bytes(b"FLR\0" * 10)
    for arguments, said in (
        (("run:1", str(tmp_path / "none")), "cannot be read"),
        (("run:1", str(recording)), "Convert it: java -jar jfr-converter.jar"),
        (("experiment:1", file), "belongs to a run"),
        (("run:1", file, "--window", "late"), "two numbers of seconds"),
    ):
        refused = ci("profile", *arguments, "--profiler", "perf")
        assert (refused.returncode, said in refused.stderr) == (3, True), refused.stderr
