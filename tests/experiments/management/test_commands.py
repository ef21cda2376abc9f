"""The operator's commands: parse, token, createadmin."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from agents.drivers.reading import REPORTING
from agents.readers import RESULT_READERS
from experiments.models import Member, Role, Team, Token
from experiments.registry.teams.tokens import authenticate

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests" / "agents" / "cases"
REPORTS = sorted(path for kind in REPORTING for path in (CASES / kind).glob("*.expected.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}")
def test_parse_prints_the_figures_of_every_case(path: Path) -> None:
    case = json.loads(path.read_text())
    stem = path.name.removesuffix(".expected.json")
    file = next(one for one in path.parent.glob(f"{stem}.*") if one != path)
    out = io.StringIO()
    call_error = None
    try:
        call_command("parse", path.parent.name, str(file), tool_command=case.get("command", ""), stdout=out)
    except CommandError as error:
        call_error = error
    report = json.loads(out.getvalue())
    assert (call_error is not None) == (report["complete"] is False)
    for key in ("throughput_rps", "requests", "latency_mean_ms"):
        if isinstance(case["expected"].get(key), int | float):
            tolerance = case.get("tolerance", {}).get(key, 0)
            assert report[key] == pytest.approx(case["expected"][key], rel=1e-6, abs=tolerance), key


@pytest.mark.parametrize("kind", sorted(RESULT_READERS))
def test_parse_prints_the_named_results_of_a_file(kind: str) -> None:
    for path in sorted((CASES / kind).glob("*.expected.json")):
        case = json.loads(path.read_text())
        stem = path.name.removesuffix(".expected.json")
        file = next(one for one in path.parent.glob(f"{stem}.*") if one != path and one.stem == stem)
        out = io.StringIO()
        try:
            call_command("parse", kind, str(file), stdout=out)
        except CommandError:
            assert not case["expected"]["results"], file
        if not out.getvalue():
            assert case["usable"] is False, file
            continue
        found = json.loads(out.getvalue())
        assert found["format"] == case["format"]
        for one, expected in zip(found["results"], case["expected"]["results"], strict=True):
            assert one["benchmark"] == expected["benchmark"], file
            assert one["params"] == expected["params"] | one["params"], file
            assert set(expected["figures"]) <= set(one["figures"]), file


def test_parse_finds_the_form_of_a_file_by_its_content(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    call_command("parse", "auto", str(CASES / "ycsb" / "load.txt"), stdout=out, stderr=err)
    assert json.loads(out.getvalue())["results"][0]["benchmark"] == "OVERALL"
    assert "looks like ycsb-text (YCSB)." in err.getvalue()
    out = io.StringIO()
    call_command("parse", "auto", str(CASES / "hey" / "basic.txt"), stdout=out, stderr=err)
    assert json.loads(out.getvalue())["tool"] == "hey"
    with pytest.raises(CommandError, match="It may be wrk or wrk2"):
        call_command("parse", "auto", str(CASES / "wrk" / "basic.txt"), stdout=io.StringIO())
    with pytest.raises(CommandError, match="--split is for reports of load tools"):
        call_command("parse", "ycsb", str(CASES / "ycsb" / "load.txt"), split=True, stdout=io.StringIO())
    strange = tmp_path / "strange.txt"
    strange.write_text("nothing that anybody knows")
    with pytest.raises(CommandError, match=r"No form is like it\. Name its KIND"):
        call_command("parse", "auto", str(strange), stdout=io.StringIO())
    with pytest.raises(CommandError, match="auto needs a FILE"):
        call_command("parse", "auto", "-", stdout=io.StringIO())


def test_parse_refuses_a_file_that_is_not_of_the_form_with_the_path_of_what_is_wrong() -> None:
    out = io.StringIO()
    with pytest.raises(CommandError, match="GET /people > latency should be an object"):
        call_command("parse", "bmf", str(CASES / "bmf" / "not-bmf-bare-number.json"), stdout=out)
    assert out.getvalue() == ""


@pytest.mark.parametrize("kind, text", [("wrk", b"rubbish"), ("nope", b"x"), ("wrk", b"\xff\xfe\x00"), ("wrk2", b"")])
def test_parse_says_what_it_cannot_read(tmp_path: Path, kind: str, text: bytes) -> None:
    file = tmp_path / "report.txt"
    file.write_bytes(text)
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"report\.txt"):
        call_command("parse", kind, str(file), stdout=out)
    assert out.getvalue() == ""
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("parse", kind, str(tmp_path / "missing"), stdout=out)


def test_parse_starts_no_service_and_reads_standard_input(data_dir: Path) -> None:
    text = next(CASES.glob("wrk/basic.txt")).read_bytes()
    environment = {"PATH": os.environ["PATH"], "BENCHHUB_DATA_DIR": str(data_dir)}
    done = subprocess.run(
        [sys.executable, "manage.py", "parse", "wrk", "-"],
        cwd=ROOT,
        env=environment,
        input=text,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tool"] == "wrk"
    assert not (data_dir / "services").exists()
    bad = subprocess.run(
        [sys.executable, "manage.py", "parse", "wrk", "-"],
        cwd=ROOT,
        env=environment,
        input=b"rubbish",
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert (bad.returncode, bad.stdout) == (1, b"")
    assert b"no report of wrk" in bad.stderr


@pytest.mark.parametrize(
    "environment, said",
    [
        ({"DATABASE_URL": "postgres://x:y@127.0.0.1:1/none"}, b"manage.py: Set "),
        (
            {"DATABASE_URL": "postgres://x:y@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0",
             "SECRET_KEY": "x" * 60, "ALLOWED_HOSTS": "x", "BENCHHUB_KEY_FILE": __file__},
            b"manage.py: the database does not answer: ",
        ),
        ({"BENCHHUB_DATA_DIR": "/proc/none"}, b"manage.py: [Errno 2] No such file or directory: '/proc/none'"),
    ],
    ids=["half configured", "no database", "no data directory"],
)  # fmt: skip
def test_an_installation_that_cannot_work_is_said_in_one_line(environment: dict[str, str], said: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "rejudge"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1), done.stderr
    assert done.stderr.startswith(said)


def test_a_token_comes_from_the_command_line(admin: Member) -> None:
    out = io.StringIO()
    given = {"team": "perf", "user": "ada", "name": "ci", "scopes": "read, launch"}
    call_command("token", "create", *(f"--{key}={value}" for key, value in given.items()), stdout=out)
    bearer = authenticate(out.getvalue().strip())
    assert bearer is not None
    assert bearer.token.scopes == ["read", "launch"]
    for wrong in ({"team": "none"}, {"user": "none"}, {"scopes": "root"}, {"name": " "}):
        with pytest.raises(CommandError):
            call_command("token", "create", *(f"--{key}={value}" for key, value in {**given, **wrong}.items()))
    assert Token.objects.count() == 1


def test_the_first_admin_is_made_once(db: None, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("a long enough secret\n")
    out = io.StringIO()
    for _ in range(2):
        call_command("createadmin", "--user=root", "--team=perf", f"--password-file={file}", stdout=out)
        file.write_text("another long secret\n")
    assert "Made: user root, team perf, membership." in out.getvalue()
    assert "already" in out.getvalue()
    account = get_user_model().objects.get()
    assert account.check_password("a long enough secret")
    assert Member.objects.get().role == Role.ADMIN


@pytest.mark.parametrize(
    "arguments, password", [(["--team=a b"], "a long enough secret"), ([], "short"), ([], "password"), ([], "")]
)
def test_an_admin_that_cannot_be_leaves_nothing(db: None, tmp_path: Path, arguments: list[str], password: str) -> None:
    file = tmp_path / "password"
    file.write_text(password)
    with pytest.raises(CommandError):
        call_command("createadmin", f"--password-file={file}", *arguments)
    with pytest.raises(CommandError):
        call_command("createadmin", f"--password-file={tmp_path / 'no-such-file'}")
    assert not get_user_model().objects.exists()
    assert not Team.objects.exists()
