"""What pip installs: the wheel alone in an environment of its own, and the command `benchhub` away from any checkout.

The packages that it needs are lent from this environment: what pip itself makes of their names and pins is tried by
bin/release.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest
import requests
from packaging.requirements import Requirement

from benchhub.embedded import PROJECT_DIR
from benchhub.processes import wait_until
from tests.agents.run_lab import free_port

PATIENCE_S = 300.0
PASSWORD = "a long enough secret"
HOME = "benchhub_app"
PACKAGES = ("agents", "benchhub", "clients", "experiments", "frontend", "lab")
FILES = ("manage.py", "bin/demo", "bin/lib.sh")
USERS = "from django.contrib.auth.models import User; print(*User.objects.values_list('username', flat=True))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `pip install .` does, with the versions of pyproject.toml."""
    place = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--check-build-dependencies"]
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", *options, "--wheel-dir", str(place), str(PROJECT_DIR)]
    subprocess.run(argv, check=True, timeout=600)
    (built,) = place.glob("*.whl")
    return built


@dataclass(frozen=True)
class Installation:
    """The command `benchhub`, with a data directory of its own."""

    place: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.place}/venv/bin:/usr/local/bin:/usr/bin:/bin"
        return {"PATH": path, "HOME": str(self.place), "BENCHHUB_DATA_DIR": str(self.place / "data")}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [f"{self.place}/venv/bin/benchhub", *arguments],
            cwd="/", env=self.environment, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip

    def done(self, *arguments: str) -> str:
        """What a command prints that ends well."""
        result = self.run(*arguments)
        assert result.returncode == 0, (arguments, result.stdout, result.stderr)
        return result.stdout

    def on_a_terminal(self, command: str, answers: dict[str, str]) -> str:
        """What stands on the terminal when each prompt in turn got its answer."""
        argv = ["script", "--quiet", "--command", f"{self.place}/venv/bin/benchhub {command}", "/dev/null"]
        with subprocess.Popen(
            argv, cwd="/", env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            shown = b""
            for prompt, answer in answers.items():
                while not shown.endswith(prompt.encode()):
                    more = process.stdout.read(1)
                    assert more, shown
                    shown += more
                process.stdin.write(answer.encode() + b"\n")
            return (shown + process.stdout.read()).decode()

    @contextmanager
    def up(self) -> Iterator[Path]:
        """BenchHub as `benchhub up` starts it; what it says so far is in the file."""
        said = self.place / "up.log"
        with said.open("wb") as log:
            argv = [f"{self.place}/venv/bin/benchhub", "up", "--port", str(self.port)]
            process = subprocess.Popen(argv, cwd="/", env=self.environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: process.poll() is not None or "is ready" in said.read_text(), seconds=PATIENCE_S)
            assert "is ready" in said.read_text(), said.read_text()
            yield said
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def installation(wheel: Path) -> Iterator[Installation]:
    place = Path(tempfile.mkdtemp(prefix="benchhub-wheel-"))
    place.chmod(0o755)  # for the account that PostgreSQL has under root
    venv.create(place / "venv", symlinks=True)
    python = str(place / "venv" / "bin" / "python")
    argv = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*argv, str(wheel)], check=True, timeout=600)
    (packages,) = (place / "venv" / "lib").glob("python3.*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    found = Installation(place, free_port())
    yield found
    found.run("services", "stop")
    shutil.rmtree(place)


def test_the_wheel_has_all_of_the_product_in_one_directory_and_nothing_else(wheel: Path) -> None:
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    sources = [path for package in PACKAGES for path in (PROJECT_DIR / package).rglob("*") if path.is_file()]
    sources += [*(PROJECT_DIR / "docs").rglob("*.md"), *(PROJECT_DIR / name for name in FILES)]
    wanted = [path.relative_to(PROJECT_DIR) for path in sources if path.suffix != ".pyc"]
    assert sorted(names) == sorted(f"{HOME}/{path}" for path in wanted)


def test_the_wheel_asks_for_the_pinned_packages(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    asked = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist", [])
    lines = (PROJECT_DIR / "requirements.txt").read_text().splitlines()
    pinned = [text for line in lines if (text := line.partition("#")[0].strip())]
    assert {str(Requirement(text)).lower() for text in asked} == {str(Requirement(text)).lower() for text in pinned}


def test_the_command_knows_its_version_and_asking_the_demo_starts_none(installation: Installation) -> None:
    assert re.fullmatch(r"benchhub \d+\.\d+\.\d+\n", installation.done("--version"))
    assert "usage: benchhub demo" in installation.done("demo", "--help")
    status = installation.run("demo", "--status")
    assert (status.returncode, status.stdout) == (1, "BenchHub is not running.\n"), status.stderr


def sign_in(installation: Installation) -> requests.Session:
    browser = requests.Session()
    page = f"{installation.url}/accounts/login/"
    browser.get(page, timeout=60)
    form = {"login": "alice", "password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["benchhub_csrf"]}
    browser.post(page, form, timeout=60).raise_for_status()
    return browser


def look_at_the_pages(installation: Installation) -> None:
    browser = sign_in(installation)
    for path, words in (
        ("/t/tuning/", "Overview"),
        ("/t/tuning/library/", "ready to be launched on"),
        ("/t/tuning/help/operations/", "Two ways to run it"),
        ("/t/tuning/operator/", "across teams"),
        ("/api/v1/openapi.json", '"openapi"'),
    ):
        page = browser.get(installation.url + path, timeout=60)
        assert (page.status_code, words in page.text) == (200, True), (path, page.text[:500])
        for file in re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text):
            assert browser.get(installation.url + file, timeout=60).status_code == 200, file
    assert browser.get(f"{installation.url}/cli/benchhub-ci", timeout=60).content.startswith(b"#!/usr/bin/env python3")


@pytest.mark.slow
def test_up_the_first_account_pages_doctor_backup_and_restore(installation: Installation, tmp_path: Path) -> None:
    """One story, as the README tells it."""
    login, backup = f"{installation.url}/accounts/login/", installation.place / "a.backup"
    with installation.up() as said:
        wait_until(lambda: "no account" in said.read_text(), seconds=PATIENCE_S)
        command = "benchhub createadmin --user NAME --team TEAM"
        assert f"There is no account yet. In another terminal: {command}" in said.read_text()
        assert command in requests.get(login, timeout=60).text

        refused = installation.on_a_terminal("createadmin --user alice", {"Password: ": "short", "Again: ": "short"})
        assert refused.index("At least 10 characters") < refused.index("Password: ") < refused.index("too short")
        made = installation.on_a_terminal(
            "createadmin --user alice --team tuning", {"Password: ": PASSWORD, "Again: ": PASSWORD}
        )
        assert "Made: user alice, team tuning" in made
        assert "createadmin" not in requests.get(login, timeout=60).text
        look_at_the_pages(installation)

        # Beat tells of itself every half a minute.
        wait_until(lambda: installation.run("doctor").returncode == 0, seconds=PATIENCE_S, interval_s=10)
        assert re.search(r"^ok +workers ", installation.done("doctor"), re.M)
        installation.done("backup", str(backup), "--keys", str(installation.place / "keys"))
    assert said.read_text().endswith("stopped\n")

    assert "is whole" in installation.done("backup", "--verify", str(backup))
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    installation.done("createadmin", "--user=bob", "--team=late", f"--password-file={secret}")
    assert installation.done("shell", "-v", "0", "-c", USERS) == "alice bob\n"
    installation.done("restore", str(backup), "--replace")
    assert installation.done("shell", "-v", "0", "-c", USERS) == "alice\n"
    after = installation.done("doctor", "--port", str(installation.port))
    assert re.search(r"^advice +workers +BenchHub is not running", after, re.M), after
    assert after.endswith("Nothing is wrong.\n")
