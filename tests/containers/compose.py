"""docker-compose.yml as an operator uses it: a checkout of its own, its project in an engine, commands of the guide."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchhub.processes import wait_until

ROOT = Path(__file__).resolve().parents[2]
OWN = ("web", "worker-runs", "worker-default", "beat")
KEPT = (".env", "secrets", "certificates")
"""What an operator has in a checkout that is no part of it."""
SETTINGS = (
    "BENCHHUB_",
    "DATABASE_",
    "REDIS_",
    "SECRET_",
    "COMPOSE_",
    "ALLOWED_",
    "CSRF_",
    "DEBUG",
    "DJANGO_",
    "EMAIL_",
)
"""What compose would take from the shell of whoever starts the tests."""
READY_S = 400
COMPOSE = ("docker", "compose")
OLDER = ("docker-compose",)


def until(holds: Callable[[], bool], seconds: float, said: Callable[[], object]) -> None:
    """Wait for it. AssertionError with what is `said` then, when the time is over."""
    assert wait_until(holds, seconds=seconds, interval_s=0.5), said()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def engine(*arguments: str, check: bool = True) -> str:
    """What the docker command prints. AssertionError with its words when it fails."""
    return _done(["docker", *arguments], check=check)


def lay_out(place: Path, revision: str | None = None) -> None:
    """The source into a checkout, in the place of what is there: this one with its changes, or that of a commit."""
    for entry in place.iterdir() if place.exists() else ():
        if entry.name not in KEPT:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    place.mkdir(exist_ok=True)
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout
    there = b"\0".join(name for name in files.split(b"\0") if name and (ROOT / os.fsdecode(name)).is_file())
    pack = ["git", "archive", revision] if revision else ["tar", "--null", "--files-from=-", "-cf", "-"]
    packed = subprocess.run(pack, cwd=ROOT, check=True, capture_output=True, input=b"" if revision else there).stdout
    subprocess.run(["tar", "-xf", "-"], cwd=place, check=True, input=packed)


def _done(argv: list[str], *, check: bool = True, cwd: Path | None = None, given: str | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    done = subprocess.run(
        argv, cwd=cwd, env=environment, input=given or "", capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0 or not check, (argv, done.stdout[-4000:], done.stderr[-4000:])
    return done.stdout


@dataclass
class Stack:
    """A checkout with its .env, and the containers of its compose project."""

    root: Path
    project: str
    port: int
    compose: tuple[str, ...]

    @classmethod
    def make(cls, root: Path, project: str, revision: str | None = None, **settings: str) -> Stack:
        """The checkout with keys of its own; nothing is started. `settings` go into its .env."""
        lay_out(root, revision)
        _done(["bin/new-env"], cwd=root)
        newer = subprocess.run([*COMPOSE, "version"], capture_output=True, check=False).returncode == 0
        stack = cls(root, project, free_port(), COMPOSE if newer else OLDER)
        stack.set(COMPOSE_PROJECT_NAME=project, BENCHHUB_PORT=str(stack.port), **settings)
        return stack

    def set(self, **settings: str) -> None:
        """Change .env."""
        file = self.root / ".env"
        text = file.read_text()
        for name, value in settings.items():
            line = f"{name}={value}"
            text, found = re.subn(rf"^(?:# )?{name}=.*$", line, text, count=1, flags=re.MULTILINE)
            text += "" if found else f"{line}\n"
        file.write_text(text)

    def sh(self, commands: str) -> str:
        """Do commands of the guide in the checkout; returns what they print."""
        return _done(["sh", "-euc", commands.replace("docker compose", " ".join(self.compose))], cwd=self.root)

    def do(self, *arguments: str, check: bool = True, given: str | None = None) -> str:
        """One command of compose."""
        return _done([*self.compose, *arguments], check=check, cwd=self.root, given=given)

    def manage(self, *arguments: str) -> str:
        return self.do("exec", "-T", "web", "python", "manage.py", *arguments)

    def on(self, service: str, *command: str) -> str:
        """A command in the service's container."""
        return self.do("exec", "-T", service, *command)

    def container(self, service: str) -> str:
        """The id of the service's container; "" when there is none."""
        labels = (f"com.docker.compose.project={self.project}", f"com.docker.compose.service={service}")
        filters = [part for label in labels for part in ("--filter", f"label={label}")]
        found = engine("ps", "-aq", "--no-trunc", *filters, "--filter", "label=com.docker.compose.oneoff=False")
        return found.split("\n")[0]

    def state(self, service: str) -> tuple[str, str]:
        """Since when its first process runs and what its health check says ("" without one); "", "" unless it runs."""
        found = json.loads(engine("inspect", "--format", "{{json .State}}", self.container(service)))
        if not found["Running"] or found["Restarting"]:
            return "", ""
        return found["StartedAt"], found.get("Health", {}).get("Status", "")

    def kill(self, service: str) -> None:
        """End its first process as the kernel does when memory is short: nobody asked, so the engine starts it again.

        `docker kill` would count as the wish to have it stopped. The signal comes from another container, which sees
        the processes of the engine's machine.
        """
        pid = engine("inspect", "--format", "{{.State.Pid}}", self.container(service)).strip()
        image = engine("inspect", "--format", "{{.Image}}", self.container("web")).strip()
        rights = ["--pid", "host", "--network", "none", "--user", "0", "--cap-drop", "ALL", "--cap-add", "KILL"]
        engine("run", "--rm", *rights, "--entrypoint", "python", image, "-c", f"import os; os.kill({pid}, 9)")

    def wait_until_back(self, service: str, before: str) -> None:
        """Until its container has started again since `before`, and its health check says so where there is one."""

        def is_back() -> bool:
            since, health = self.state(service)
            return since not in ("", before) and health in ("", "healthy")

        until(is_back, READY_S, lambda: (service, self.state(service), self.log(service)))

    def wait_until_ready(self) -> None:
        """Until the web container is healthy and says that nothing is missing."""
        until(lambda: self.state("web")[1] == "healthy", READY_S, self.log)
        until(lambda: "degraded" not in self.readyz(), READY_S, self.readyz)

    def readyz(self) -> str:
        ask = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8000/readyz').read().decode())"
        return self.do("exec", "-T", "web", "python", "-c", ask, check=False) or "degraded: no answer"

    def log(self, *services: str) -> str:
        return self.do("logs", "--no-color", "--tail", "60", *services, check=False)

    def remove(self) -> None:
        """Everything of the project: containers, networks, volumes and the images that it built."""
        self.do("--profile", "lab", "down", "--volumes", "--remove-orphans", "--rmi", "local", "-t", "5", check=False)
        for image in (self.project, f"{self.project}-lab"):
            engine("image", "rm", "--force", image, check=False)
