"""Processes that have loaded all that a Celery worker loads, from which workers are forked.

    worker = worker_from_nursery(arguments, environment, log)

A worker that starts by itself spends three seconds of a CPU on nothing but modules, and a test of faults starts up to
thirty. A forked one begins where the modules are there: what it does from `celery.__main__` on is its own. There is
a nursery for each environment, since settings are read when modules are loaded.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from django.conf import settings

from benchhub.processes import PR_SET_PDEATHSIG

LOOK_S = 0.02
MOST_KEPT = 3
"""Nurseries of one test process: each holds the memory of a worker."""


class Forked(subprocess.Popen[bytes]):
    """A worker that is a child of its nursery, not of this process; else as what `subprocess` gives."""

    def __init__(self, nursery: Nursery, pid: int, argv: Sequence[str]) -> None:
        self.args, self.pid, self.returncode = list(argv), pid, None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = False  # for Popen: there is no child of this process to wait for
        self._nursery = nursery

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.ended(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end_s = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (status := self.poll()) is None:
            if time.monotonic() > end_s:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            time.sleep(LOOK_S)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


class Nursery:
    """One of these processes; it and its workers die with this process, or when it is closed."""

    def __init__(self, environment: Mapping[str, str], directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"],
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._workers: list[Forked] = []

    def fork(self, module: str, argv: Sequence[str], log: Path, times: Mapping[str, int]) -> Forked:
        """`python -m MODULE` with these arguments, which writes to `log`; `times` are settings of its own."""
        asked = {"module": module, "argv": list(argv), "log": str(log), "times": dict(times)}
        pid = int(self._ask(asked))
        self._workers.append(Forked(self, pid, argv))
        return self._workers[-1]

    def ended(self, pid: int) -> int | None:
        """How the worker ended, as `subprocess` says it; None while it lives."""
        status = self._ask({"pid": pid})
        return None if status is None else int(status)

    @property
    def is_idle(self) -> bool:
        return all(worker.poll() is not None for worker in self._workers)

    def close(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._process.wait()

    def _ask(self, question: Mapping[str, Any]) -> Any:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        asked.write(json.dumps(question).encode() + b"\n")
        asked.flush()
        answer = answers.readline()
        if not answer:
            raise RuntimeError(f"the nursery is gone: {self._process.wait()}")
        return json.loads(answer)


_nurseries: dict[tuple[frozenset[tuple[str, str]], Path], Nursery] = {}


def worker_from_nursery(argv: Sequence[str], environment: Mapping[str, str], log: Path, directory: Path) -> Forked:
    """A process `celery ARGV` in this environment and directory."""
    return process_from_nursery("celery", argv, environment, log, directory)


def process_from_nursery(
    module: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    directory: Path,
    times: Mapping[str, int] = MappingProxyType({}),
) -> Forked:
    """A process `python -m MODULE ARGV` in this environment and directory; `times` take the place of its settings."""
    key = (frozenset(environment.items()), directory)
    if key not in _nurseries:
        idle = [other for other, nursery in _nurseries.items() if nursery.is_idle]
        for other in idle[: max(0, len(_nurseries) + 1 - MOST_KEPT)]:
            _nurseries.pop(other).close()
        _nurseries[key] = Nursery(environment, directory)
    return _nurseries[key].fork(module, argv, log, times)


@atexit.register
def _close_all() -> None:
    for nursery in _nurseries.values():
        nursery.close()


def main(asked: IO[bytes], answers: IO[bytes]) -> list[str]:
    """Forks and looks after workers until nobody asks any more. In a forked one: returns its module and arguments."""
    for line in asked:
        question = json.loads(line)
        answer: int | None
        if "pid" in question:
            pid, status = os.waitpid(question["pid"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif (answer := os.fork()) == 0:
            os.setsid()
            die_with_the_parent()
            asked.close()
            answers.close()
            redirect(Path(question["log"]))
            for name, seconds in question["times"].items():
                setattr(settings, name, seconds)
            return [question["module"], *question["argv"]]
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
    sys.exit()


def load() -> None:
    """What a worker loads before its first run, and with it."""
    import benchhub.celery

    for name in ("celery.apps.worker", "celery.bin.celery", "celery.worker.consumer", "kombu.transport.redis"):
        importlib.import_module(name)
    app = benchhub.celery.app
    app.loader.import_default_modules()  # sets Django up
    app.autodiscover_tasks(force=True)
    app.Worker  # noqa: B018 - Celery makes its classes when they are first asked for
    for name in ("agents.site.worker", "benchhub.urls", "uvicorn"):  # what a site's worker and the web server load
        importlib.import_module(name)


def die_with_the_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def redirect(log: Path) -> None:
    """What this process prints goes to the end of a log, and it reads nothing."""
    log.parent.mkdir(parents=True, exist_ok=True)
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)


if __name__ == "__main__":
    die_with_the_parent()
    load()
    sys.argv = main(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    runpy.run_module(sys.argv[0], run_name="__main__")
