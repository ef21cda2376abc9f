"""The client of Python: its wheel in an environment that has nothing else, and what it does against a real server."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import sysconfig
import venv
from datetime import timedelta
from pathlib import Path
from typing import Any

import nbformat
import polars as pl
import pytest
from django.utils import timezone
from nbclient import NotebookClient
from pytest_django.live_server_helper import LiveServer

from benchhub.embedded import PROJECT_DIR
from clients.python import benchhub_client
from clients.python.benchhub_client import Hub, Trouble, watching
from clients.python.benchhub_client.command_line import main
from clients.python.benchhub_client.login import login_file
from experiments.keeping.retention.trash import trash_runs
from experiments.models import Member, Role, Run, RunEvent
from experiments.registry.teams.tokens import issue
from tests.experiments.api.test_auth import NAMES
from tests.experiments.conftest import MakeMember

SETUP: dict[str, Any] = {**NAMES}
REPORT = Path(__file__).parents[2] / "agents/cases/wrk/basic.txt"
NOTEBOOK = PROJECT_DIR / "docs/notebooks/verdict.ipynb"
ALONE = """
from benchhub_client import Hub, Trouble
hub = Hub()
run = hub.launch(application="tomcat", recipe="limits", workload="home page", sut="sut-1", drivers=["driver-1"])
print(run.number, run.state)
with hub.session(labels={"commit": "a1"}) as s:
    s.log(rps=100.5, p99_ms=3)
print(s.run.number, s.run.verdict().outcome, s.run.metrics["throughput_rps"])
try:
    print(hub.runs().shape)
except Trouble as trouble:
    print(trouble)
"""


def test_the_wheel_alone_launches_a_run_and_says_what_data_frames_need(
    transactional_db: None, live_server: LiveServer, token: str, stock: dict[str, Any], tmp_path: Path
) -> None:
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    source = PROJECT_DIR / "clients/python"
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", *options, "--wheel-dir", str(tmp_path), str(source)], check=True, timeout=300)
    (wheel,) = tmp_path.glob("benchhub_client-*.whl")
    venv.create(tmp_path / "alone", with_pip=False)
    python = tmp_path / "alone/bin/python"
    subprocess.run([*pip, "--python", str(python), "install", *options[:3], str(wheel)], check=True, timeout=300)
    env = {"BENCHHUB_URL": live_server.url, "BENCHHUB_TOKEN": token, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    def said(*argv: str) -> str:
        return subprocess.run(argv, env=env, check=True, capture_output=True, text=True, timeout=120).stdout

    lines = said(str(python), "-c", ALONE).splitlines()
    assert lines[:2] == ["1 queued", "2 inconclusive 100.5"]
    assert "benchhub-client[polars]" in lines[2]
    lent = next((tmp_path / "alone/lib").glob("python*/site-packages")) / "lent.pth"
    lent.write_text(sysconfig.get_path("purelib"))  # polars, from this environment
    assert said(str(python), "-c", "from benchhub_client import Hub; print(Hub().runs().height)") == "2\n"
    assert "compare" in said(str(tmp_path / "alone/bin/bh"), "--help")


def test_a_session_stores_one_run_and_a_failed_one_says_why(hub: Hub) -> None:
    with hub.session(history="checkout", labels={"branch": "main"}, parameters={"pool": 64}) as session:
        session.log(rps=5120.5, p99_ms=18.2, requests=307230, errors=0)
        session.log_own("cart_age_ms", 3.4, unit="ms", better="lower")
        for at_s, value in enumerate((1e9, 9e8)):
            session.sample("heap.used_bytes", value, unit="bytes", at_s=at_s)
    assert session.run is not None
    assert {name: session.run.metrics[name] for name in ("throughput_rps", "latency_p99_ms", "cart_age_ms")} == {
        "throughput_rps": 5120.5, "latency_p99_ms": 18.2, "cart_age_ms": 3.4,
    }  # fmt: skip
    assert session.run.samples(library="polars")["value"].to_list() == [1e9, 9e8]
    failed = hub.session(history="checkout")
    with pytest.raises(ZeroDivisionError), failed:
        failed.log(rps=1 / 0)
    assert failed.run is not None
    assert failed.run.data["outcome"] == "failed"
    assert "ZeroDivisionError" in failed.run.data["failure"]
    with pytest.raises(Trouble, match="logged no figure"), hub.session():
        pass
    assert Run.objects.count() == 2


def test_runs_and_a_history_are_frames_of_the_chosen_library(hub: Hub) -> None:
    for rate in (100, 200):
        with hub.session(history="checkout", labels={"branch": "main" if rate == 100 else "other"}) as session:
            session.log(rps=rate)
    assert session.run is not None
    whole = hub.runs(library="polars")
    assert isinstance(whole, pl.DataFrame)
    assert whole["throughput_rps"].to_list() == [100, 200]
    assert hub.runs(label={"branch": "main"}, throughput_rps__lte=150)["number"].to_list() == [1]
    assert hub.series(str(session.run.data["fingerprint"]))["number"].to_list() == [1, 2]
    for library in ("pandas", "pyarrow"):
        with pytest.raises(Trouble, match=rf"benchhub-client\[{library}\]"):
            hub.runs(library=library)
    assert hub.compare(1, 2)["runs"][0]["number"] == 1


def test_the_frame_of_an_experiment_has_profiled_twins_only_when_they_are_asked_for(hub: Hub) -> None:
    setup = {"application": "tomcat", "recipe": "limits", "sut": "sut-1", "drivers": ["driver-1"]}
    variants = [{"name": name, **setup} for name in ("a", "b")]
    experiment = hub.launch_experiment(name="twins", workload="home page", variants=variants, profilers=["perf"])
    assert set(experiment.runs("polars")["profiled"]) == {False}
    assert set(experiment.runs("polars", profiled=True)["profiled"]) == {False, True}


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({"number__in": [1, 3]}, [1, 3]),
        ({"number__in": range(2, 4)}, [2, 3]),
        ({"number__in": "1,2"}, [1, 2]),
        ({"state__in": ("queued", "finished"), "number__in": {2}}, [2]),
        ({"param": {"http2": True}}, [2]),
        ({"label": {"n": 3, "of": "all"}}, [3]),
    ],
)
def test_every_value_of_a_filter_counts(hub: Hub, filters: dict[str, Any], numbers: list[int]) -> None:
    for n in (1, 2, 3):
        with hub.session(labels={"n": str(n), "of": "all"}, parameters={"http2": n == 2}) as session:
            session.log(rps=n)
    assert hub.runs(library="polars", **filters)["number"].to_list() == numbers


def test_a_filter_that_would_say_something_else_is_refused(hub: Hub) -> None:
    for filters, words in (
        ({"number__in": []}, "number__in has no value"),
        ({"recipe__in": ["a, b"]}, "recipe__in: 'a, b' has a comma"),
        ({"state": ["queued", "finished"]}, r"state is given 2 times, and holds one value. \(field: state\)"),
    ):
        with pytest.raises(Trouble, match=words):
            hub.runs(**filters)


def test_a_launch_is_repeatable_waited_for_and_cancelled(hub: Hub) -> None:
    first, again = (hub.launch(**SETUP, key="build-17", labels={"a": "b"}) for _ in range(2))
    assert (first.number, again.number, first.state) == (1, 1, "queued")
    with pytest.raises(Trouble, match="run #1 is not finished after 0 s; it goes on"):
        first.wait(timeout_s=0)
    first.cancel()
    ended = first.wait(timeout_s=60)
    assert (ended.state, ended.verdict().outcome, ended.files()) == ("finished", "error", [])
    with pytest.raises(Trouble, match="There is no run #99"):
        hub.run(99)
    with pytest.raises(Trouble, match="recipe"):
        hub.launch(**{**SETUP, "recipe": "no such"})


def test_the_commands_log_in_import_compare_and_export(
    hub: Hub, live_server: LiveServer, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("BENCHHUB_URL", "BENCHHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main(["export", str(tmp_path / "x.parquet")]) == 3
    assert "bh login" in capsys.readouterr().err
    assert main(["login", live_server.url, "--token", token]) == 0
    assert login_file().stat().st_mode & 0o777 == 0o600
    capsys.readouterr()
    taken = ["import", str(REPORT), "--kind", "wrk", "--label", "commit=a1"]
    said = [f"{REPORT}: run #1", f"{REPORT}: run #1, stored before", f"{REPORT}: run #2", f"{REPORT}: run #3"]
    for line, more in zip(said, ((), (), ("--key", "again"), ("--label", "branch=main")), strict=True):
        assert main([*taken, *more]) == 0
        assert capsys.readouterr().out == f"{line}\n"
    assert main(["compare", "1", "2"]) == 0
    header, *figures = capsys.readouterr().out.splitlines()
    assert header.split() == ["#1", "#2"]
    assert any(line.startswith("throughput_rps") for line in figures)
    assert main(["watch", "1"]) == 2  # an import is never more than suspect
    assert capsys.readouterr().out.startswith("inconclusive: ")
    assert main(["export", str(tmp_path / "runs.parquet"), "--filter", "number__in=2", "--label", "commit=a1"]) == 0
    assert pl.read_parquet(tmp_path / "runs.parquet")["number"].to_list() == [2]
    assert main(["watch", "99"]) == 3
    monkeypatch.setenv("BENCHHUB_URL", "http://127.0.0.1:9")  # the kept token is not for another installation
    assert main(["watch", "1"]) == 3
    assert "BENCHHUB_TOKEN" in capsys.readouterr().err


def test_a_file_whose_run_was_deleted_is_not_called_stored(
    hub: Hub, live_server: LiveServer, admin: Member, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("BENCHHUB_URL", live_server.url)
    taken = ["import", str(REPORT), "--kind", "wrk"]
    for scopes, status in ((["read", "launch"], 3), (["launch"], 0)):  # what a token may not read it cannot look up
        monkeypatch.setenv("BENCHHUB_TOKEN", issue(admin, name="client", scopes=scopes)[1])
        assert main(taken) == main(taken) == 0
        number = Run.objects.latest("number").number
        trash_runs(admin, [number])
        capsys.readouterr()
        assert main(taken) == status
        told = capsys.readouterr()
        if status:
            assert (told.out, f"run #{number} was deleted since" in told.err, "--key" in told.err) == ("", True, True)
            assert main([*taken, "--key", "again"]) == 0
            Run.objects.filter(number=number).delete()
            assert main(taken) == status


def test_the_notebook_goes_from_a_verdict_to_a_plot(
    hub: Hub, live_server: LiveServer, token: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for rate in (100, 110, 105):
        with hub.session(history="checkout") as session:
            session.log(rps=rate, p99_ms=5)
    here = {"BENCHHUB_URL": live_server.url, "BENCHHUB_TOKEN": token, "PYTHONPATH": str(PROJECT_DIR / "clients/python")}
    own = {name: str(tmp_path) for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    for name, value in (here | own).items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    printed = "".join(output["text"] for output in outputs if output["output_type"] == "stream")
    shown = [output["data"] for output in outputs if "data" in output]
    assert printed.startswith("inconclusive\n")
    assert "throughput_rps" in shown[0]["text/plain"]
    assert len(re.findall("<circle", shown[-1]["image/svg+xml"])) == 3


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (("--filter", "label=n=2", "--label", "os=linux"), [2]),
        (("--filter", "label=n=1", "--filter", "label=os=linux"), [1]),
        (("--label", "os=linux", "--label", "n=2"), [2]),
        (("--filter", "param=n=1", "--filter", "param=http2=true"), [1]),
        (("--filter", "number__in=1,2", "--filter", "label=os=bsd,x86"), []),
        (("--filter", "state=queued", "--filter", "state=finished"), "state is given 2 times, and holds one value."),
        (("--filter", "label"), "key=value is needed, not 'label'."),
    ],
)
def test_every_filter_of_an_export_counts(
    hub: Hub,
    live_server: LiveServer,
    token: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    filters: tuple[str, ...],
    found: list[int] | str,
) -> None:
    for n, system in ((1, "linux"), (2, "linux"), (3, "bsd,x86")):
        with hub.session(labels={"n": str(n), "os": system}, parameters={"http2": True, "n": n}) as session:
            session.log(rps=n)
    monkeypatch.setenv("BENCHHUB_URL", live_server.url)
    monkeypatch.setenv("BENCHHUB_TOKEN", token)
    file = tmp_path / "runs.parquet"
    done = main(["export", str(file), *filters])
    if isinstance(found, str):
        assert (done, found in capsys.readouterr().err, file.exists()) == (3, True, False)
    else:
        assert (done, pl.read_parquet(file)["number"].to_list()) == (0, found)


def test_with_a_key_of_ones_own_everything_is_stored_and_launched_once(
    hub: Hub, live_server: LiveServer, token: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    numbers = [hub.import_file(REPORT, kind="wrk", key=key) for key in ("report-17", "report-17", "", "")]
    assert numbers == [[1], [1], [2], [3]]
    for number, key in ((4, "measured-17"), (4, "measured-17"), (5, ""), (6, "")):
        with hub.session(key=key) as session:
            session.log(rps=100)
        assert session.run is not None
        assert session.run.number == number
    with pytest.raises(Trouble, match="used for another request"), hub.session(key="measured-17") as session:
        session.log(rps=200)
    monkeypatch.setenv("BENCHHUB_URL", live_server.url)
    monkeypatch.setenv("BENCHHUB_TOKEN", token)
    words = [f"--{name}={SETUP[name]}" for name in ("application", "recipe", "workload", "sut")]
    for number in (7, 7):
        assert main(["run", *words, f"--driver={SETUP['drivers'][0]}", "--no-wait", "--key", "build-17"]) == 0
        assert f"Run #{number}: " in capsys.readouterr().err


def test_a_file_that_two_people_import_is_each_ones_own(
    hub: Hub,
    live_server: LiveServer,
    admin: Member,
    make_member: MakeMember,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BENCHHUB_URL", live_server.url)
    for number, role in ((1, Role.LAUNCHER), (2, Role.EDITOR)):
        member = make_member(admin.team, role)
        monkeypatch.setenv("BENCHHUB_TOKEN", issue(member, name="mine", scopes=["read", "launch"])[1])
        assert main(["import", str(REPORT), "--kind", "wrk"]) == 0
        assert capsys.readouterr().out == f"{REPORT}: run #{number}\n"


def test_an_experiment_is_launched_once_with_its_variants(hub: Hub) -> None:
    shared = {name: SETUP[name] for name in ("application", "recipe", "sut", "drivers")}
    variants = [{"name": str(nofile), **shared, "parameters": {"nofile": nofile}} for nofile in (4096, 8192)]
    first, again = (
        hub.launch_experiment(name="files", workload="home page", variants=variants, repetitions=2, key="build-17")
        for _ in range(2)
    )
    assert (first.id, first.data["state"], Run.objects.count()) == (again.id, "running", 4)
    with pytest.raises(Trouble, match=r"variants\.0\.recipe"):
        hub.launch_experiment(name="x", workload="home page", variants=[{**variants[0], "recipe": "no such"}])


class Terminal(io.StringIO):
    """What a terminal was sent."""

    def isatty(self) -> bool:
        return True


def test_watching_shows_what_a_run_waits_for_what_it_says_and_how_far_it_is(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    launched = hub.launch(**SETUP)
    terminal, looks = Terminal(), iter(("measuring", "measuring", "finished"))
    pauses_s: list[float] = []
    asked: list[tuple[str, str]] = []
    get = hub.api.get

    def noted_get(path: str) -> Any:
        asked.append((Run.objects.get().state, path))
        return get(path)

    monkeypatch.setattr(hub.api, "get", noted_get)

    def next_look(seconds: float) -> None:
        """Where nobody executes runs, each look finds the next state."""
        pauses_s.append(seconds)
        stored = Run.objects.get()
        stored.state, stored.started_at = next(looks), timezone.now() - timedelta(seconds=30)
        stored.finished_at, stored.outcome = stored.started_at, "succeeded"
        stored.save()
        said = {"source": "driver", "lines": ["10 connections"], "level": "info"}
        RunEvent.objects.get_or_create(
            run=stored, seq=1, defaults={"kind": "logged", "payload": said, "fence": 0, "at": stored.started_at}
        )

    assert watching.follow(launched, terminal, next_look).state == "finished"
    first, *_, last = [line for line in terminal.getvalue().split("\r\x1b[K") if line]
    reason = launched.data["waiting"]["reason"]
    assert first.startswith(f"#1 queued  {reason}")
    assert "#1 measuring  [" in terminal.getvalue()
    assert "driver: 10 connections" in terminal.getvalue()
    assert last == "#1 finished\n"
    assert [state for state, path in asked if path == "/queue"] == ["measuring"]
    assert pauses_s[0] >= 5 > pauses_s[1]


@pytest.mark.parametrize(
    ("passed_s", "left_s", "said"),
    [
        (0, 100, "[--------------------]   0 %, about 2 min left"),
        (30, 30, "[##########----------]  50 %, about 30 s left"),
        (90, -5, "[###################-]  99 %, longer than estimated"),
        (-3, 10, "[--------------------]   0 %, about 10 s left"),
    ],
)
def test_the_bar_never_says_that_a_run_is_over_before_it_is(passed_s: float, left_s: float, said: str) -> None:
    assert watching.bar(passed_s, left_s) == said


def test_the_four_lines_of_the_readme_launch_a_run(
    hub: Hub, live_server: LiveServer, token: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (PROJECT_DIR / "README.md").read_text(), re.DOTALL)
    assert len([line for line in block.splitlines() if line]) == 4
    monkeypatch.setitem(sys.modules, "benchhub_client", benchhub_client)
    there = {"https://benchhub.example.com": live_server.url, '"home"': '"home page"', ".wait()": ".cancel()"}
    for name, instead in there.items():  # nobody executes runs here, so it is cancelled in place of being waited for
        block = block.replace(name, instead)
    exec(block, {"token": token})
    assert Run.objects.get().outcome == "cancelled"
    assert "error" in capsys.readouterr().out
