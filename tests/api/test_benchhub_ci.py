"""benchhub-ci as a process of its own against a live server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pytest_django.live_server_helper import LiveServer

from experiments.api.benchhub_ci import parser
from experiments.models import Experiment, Member, Run, StoredVerdict
from experiments.teams.tokens import issue
from tests.sshd import eventually

SCRIPT = Path(__file__).parents[2] / "experiments" / "api" / "benchhub_ci.py"

Ci = Callable[..., "subprocess.CompletedProcess[str]"]


def run_ci(url: str, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "BENCHHUB_URL": url, "BENCHHUB_TOKEN": token}
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPT), *arguments, *(() if "--patience" in arguments else ("--patience", "5"))],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def ci(transactional_db: None, live_server: LiveServer, admin: Member, stock: dict[str, Any]) -> Ci:
    _, text = issue(admin, name="ci", scopes=["read", "launch"])
    return lambda *arguments: run_ci(live_server.url, text, *arguments)


NAMES = ("--application=tomcat", "--recipe=limits", "--workload=home page", "--sut=sut-1", "--driver=driver-1")


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
    from experiments.launch import Candidate, create_experiment

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
        (("trigger", *NAMES[:4], "--driver=nope"), "field: drivers.0"),
        (("trigger", *NAMES, "--param", "nofile=many"), "not of type int"),
        (("trigger", *NAMES, "--label", "x"), "key=value"),
        (("gate", "run:99"), "no run #99"),
        (("gate", "bogus"), "An ID is"),
        (("gate",), "required"),
        (("nothing",), "invalid choice"),
    ],
)
def test_a_command_that_cannot_be_is_an_error_and_no_verdict(ci: Ci, arguments: tuple[str, ...], said: str) -> None:
    done = ci(*arguments)
    assert (done.returncode, said in done.stderr, done.stdout) == (3, True, ""), done.stderr


def test_a_wrong_token_is_not_tried_again(live_server: LiveServer) -> None:
    done = run_ci(live_server.url, "bh_x_y", "gate", "run:1")
    assert (done.returncode, "HTTP 401" in done.stderr) == (3, True)


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
    from experiments.launch import Candidate, create_experiment

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
    transactional_db: None, live_server: LiveServer, admin: Member, stock: dict[str, Any], cancels: bool
) -> None:
    _, text = issue(admin, name="ci", scopes=["read", "launch"])
    job = subprocess.Popen(
        [sys.executable, "-I", str(SCRIPT), "run", *NAMES, *(["--cancel-on-interrupt"] if cancels else [])],
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
    assert job.wait(timeout=60) == 3
    assert ("run:1 is cancelled" in said, "run:1 goes on" in said) == (cancels, not cancels), said
    assert Run.objects.get().outcome == ("cancelled" if cancels else "")
    # The server still waits for the run on behalf of the job; it must not do so when the database is gone.
    Run.objects.update(state="finished", outcome="cancelled")
    asyncio.run(eventually(lambda: not waiting(), within_s=120))


def waiting() -> list[str]:
    """Requests that the live server still works on."""
    return [thread.name for thread in threading.enumerate() if "process_request" in thread.name]


def shell_lines(path: Path) -> str:
    """The shell commands of a ready file as one text."""
    text = path.read_text()
    if path.name == "Jenkinsfile":
        return "\n".join(re.findall(r"""sh '([^'\n]+)'|'''(.+?)'''""", text, re.S)[0][:1]) + text.partition("'''")[2]
    data = yaml.safe_load(text)
    jobs = data.get("jobs", data)
    commands = []
    for job in jobs.values():
        commands += [step["run"] for step in job.get("steps", ())] + job.get("script", []) + job.get("after_script", [])
    return "\n".join(commands)


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml", "Jenkinsfile"])
def test_the_ready_files_use_commands_that_there_are(name: str) -> None:
    commands = shell_lines(SCRIPT.parents[2] / "docs" / "ci" / name).replace("\\\n", " ")
    assert "/cli/benchhub-ci" in commands
    found = re.findall(r"python3 benchhub-ci ([^\n|>']+)", commands)
    assert found
    for arguments in found:
        options = parser().parse_args(shlex.split(arguments))
        assert (options.command, options.experiment) == ("run", "Tomcat baseline")
        assert options.idempotency_key or options.state  # else a job that runs again would start another experiment


class Flaky(BaseHTTPRequestHandler):
    """Answers 503, drops the connection, answers rubbish, and then properly."""

    seen: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        Flaky.seen.append(self.headers["Idempotency-Key"])
        attempt = len(Flaky.seen)
        if attempt == 2:
            self.connection.close()
            return
        body = b"<html>" if attempt == 3 else b'{"number": 7}'
        self.send_response(503 if attempt == 1 else 202)
        if attempt == 1:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", "http://elsewhere.invalid/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing on the test's output."""


@pytest.fixture
def flaky() -> Iterator[str]:
    Flaky.seen = []
    server = HTTPServer(("127.0.0.1", 0), Flaky)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_start_is_tried_again_under_one_key(flaky: str) -> None:
    done = run_ci(flaky, "bh_a_b", "trigger", *NAMES)
    assert (done.returncode, done.stdout) == (0, "run:7\n"), done.stderr
    assert len(Flaky.seen) == 4
    assert len(set(Flaky.seen)) == 1


class Odd(BaseHTTPRequestHandler):
    """What stands between a job and BenchHub, or in its place; `/gone` comes back after a restart."""

    ANSWERS = {
        "login-page": (200, b"<html>"),
        "gateway": (502, b"<html>"),
        "forbidden": (403, b"<html>"),
        "other-api": (200, b"[]"),
        "busy": (429, b'{"detail": "This token may send 1 request"}'),
        "gone": (200, b'{"finished": true}'),
    }
    asked: list[str]

    def do_GET(self) -> None:
        place = self.path.split("/")[1]
        Odd.asked.append(place)
        if place == "gone" and len(Odd.asked) == 1:
            self.connection.close()
            return
        status, body = self.ANSWERS["gateway" if place == "gone" and len(Odd.asked) == 2 else place]
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "4000")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing on the test's output."""


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Callable[[bool], str]]:
    """An address that answers oddly, with a certificate of its own when it speaks HTTPS."""
    Odd.asked = []
    servers: list[tuple[HTTPServer, threading.Thread]] = []

    def serve(https: bool) -> str:
        server = HTTPServer(("127.0.0.1", 0), Odd)
        if https:
            server.socket = own_certificate(tmp_path).wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return f"http{'s' * https}://127.0.0.1:{server.server_port}"

    yield serve
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def own_certificate(place: Path) -> ssl.SSLContext:
    key, file = ec.generate_private_key(ec.SECP256R1()), place / "own.pem"
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@pytest.mark.parametrize(
    "place, said",
    [
        ("login-page", "the answer is not JSON; is "),
        ("gateway", "HTTP 502, and not from BenchHub"),
        ("forbidden", "HTTP 403, and not from BenchHub"),
        ("other-api", "answered in a way that is not BenchHub's"),
        ("busy", "HTTP 429: This token may send 1 request"),
    ],
)
def test_what_stands_in_benchhubs_place_is_an_error_in_one_line(
    odd: Callable[[bool], str], place: str, said: str
) -> None:
    done = run_ci(f"{odd(False)}/{place}", "bh_a_b\n", "gate", "run:1", "--patience", "0")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), done.stderr
    assert said in done.stderr


def test_a_job_outlives_a_restart_of_benchhub_while_it_waits(odd: Callable[[bool], str]) -> None:
    done = run_ci(f"{odd(False)}/gone/api/v1/", "bh_a_b", "wait", "run:1")
    assert (done.returncode, done.stdout, len(Odd.asked)) == (0, "run:1\n", 3), done.stderr


def test_a_certificate_that_cannot_be_verified_is_said_at_once(odd: Callable[[bool], str], tmp_path: Path) -> None:
    done = run_ci(odd(True), "bh_a_b", "gate", "run:1", "--patience", "60")
    assert (done.returncode, "self-signed certificate; name the file" in done.stderr) == (3, True), done.stderr
    plain = run_ci(odd(False).replace("http:", "https:"), "bh_a_b", "gate", "run:1", "--patience", "60")
    assert (plain.returncode, "does not speak HTTPS" in plain.stderr) == (3, True), plain.stderr
    assert Odd.asked == []


def test_a_redirect_does_not_get_the_token(flaky: str) -> None:
    done = run_ci(flaky, "bh_a_b", "gate", "run:1")
    assert (done.returncode, "redirects" in done.stderr) == (3, True)


def test_a_server_that_is_away_is_an_error_in_the_end() -> None:
    done = run_ci("http://127.0.0.1:1", "bh_a_b", "gate", "run:1", "--patience", "0")
    assert (done.returncode, "no connection" in done.stderr) == (3, True)


def test_the_installation_serves_the_script(live_server: LiveServer, client: Any) -> None:
    answer = client.get("/cli/benchhub-ci")
    assert answer.content == SCRIPT.read_bytes()
    assert answer["X-Content-Type-Options"] == "nosniff"
