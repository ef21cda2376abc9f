"""Measures the memory that a large file takes: from a host over SSH into the place of files, and down through the web.

One file of random bytes and one of log lines, through a real sshd, the recorder, a directory and, with `--bucket`, a
real S3 server (moto, in a process of its own), then through a real web process. Runs in the embedded PostgreSQL of
BENCHHUB_DATA_DIR (give it a scratch directory) and keeps its team `files` there. Prints Markdown; exit status 1 when a
process grew by 128 MB or more, or when a file is not what it was.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

import bench.django_project  # noqa: F401 - before the models
from agents.remote.fetching import fetch_end
from agents.remote.ssh import connect
from bench.memory import memory_bytes, reset_peak_bytes
from bench.sshd import Hosts, free_port, running_hosts
from bench.web import ADDRESS, wait_until_it_answers
from experiments.models import Artifact, Member, Role, Run, Team
from experiments.registry.teams.tokens import issue
from experiments.running.executing.recorder import Recorder

LIMIT_BYTES = 128 << 20
MOST_BYTES = 512 << 20
PIECE_BYTES = 1 << 20
LINE = b'127.0.0.1 - - [22/Nov/2026:10:00:00 +0000] "GET /shop?item=%07d HTTP/1.1" 200 512 %d\n'
BUCKET = "bench"


@dataclass(frozen=True)
class Found:
    """One way of one file: seconds, growth of the process that did it, whether the bytes are the same."""

    what: str
    size_bytes: int
    took_s: float
    grown_bytes: int
    same: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--bucket", action="store_true", help="keep them in a bucket of an S3 server instead")
    given = parser.parse_args()
    call_command("migrate", verbosity=0)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchhub-files-")))
        (folder / "hosts").mkdir()
        hosts = stack.enter_context(running_hosts(folder / "hosts", 1))
        place = stack.enter_context(_bucket()) if given.bucket else {}
        run, token = _run()
        found = [_kept(hosts, folder, run, *one) for one in _files(folder, given.megabytes << 20)][1:]
        found += stack.enter_context(_web(place)).downloads(run, token)
    for line in _table(found):
        print(line)
    sys.exit(any(not one.same or one.grown_bytes >= LIMIT_BYTES for one in found))


def _files(folder: Path, size_bytes: int) -> Iterator[tuple[str, Path, str]]:
    """Name, path and media type of the files on the host; the first is small, for which everything is loaded."""
    for name, size in (("first.gz", 2 << 20), ("random.gz", size_bytes), ("access.log", size_bytes)):
        path, number = folder / name, 0
        with path.open("wb") as file:
            while file.tell() < size:
                number += 1
                file.write(LINE % (number % 10**7, number) if name == "access.log" else os.urandom(PIECE_BYTES))
        yield name, path, "text/plain; charset=utf-8" if name == "access.log" else "application/gzip"


def _kept(hosts: Hosts, folder: Path, run: Run, name: str, there: Path, media_type: str) -> Found:
    before_bytes, began_s = reset_peak_bytes(), time.monotonic()
    local = folder / "fetched"

    async def fetched() -> None:
        session = await connect(hosts.addresses[0], hosts.private_key)
        try:
            await fetch_end(session, str(there), local, max_bytes=MOST_BYTES)
        finally:
            await session.close()

    asyncio.run(fetched())
    Recorder(run.pk, run.fence).keep_file(name, local, media_type)
    took_s, grown_bytes = time.monotonic() - began_s, memory_bytes("VmHWM") - before_bytes
    kept = run.artifacts.get(name=name)
    same = kept.stored_bytes == there.stat().st_size and kept.sha256 == _sum(there)
    local.unlink()
    return Found(f"{name}: host to where it is kept", there.stat().st_size, took_s, grown_bytes, same)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class _Web:
    """A web process."""

    url: str
    pid: int

    def downloads(self, run: Run, token: str) -> list[Found]:
        """Each large file of the run, after a small one, for which everything is loaded."""
        files = run.artifacts.order_by("stored_bytes")
        return [self._download(run, token, file) for file in files][1:]

    def _download(self, run: Run, token: str, file: Artifact) -> Found:
        address = f"{self.url}/api/v1/runs/{run.number}/artifacts/{file.name}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our own
        before_bytes, began_s, digest = self._memory("VmRSS"), time.monotonic(), hashlib.sha256()
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310 - our own
            while piece := answer.read(PIECE_BYTES):
                digest.update(piece)
        took_s, grown_bytes = time.monotonic() - began_s, self._memory("VmHWM") - before_bytes
        same = digest.hexdigest() == file.sha256
        return Found(f"{file.name}: download", file.stored_bytes or 0, took_s, grown_bytes, same)

    def _memory(self, name: str) -> int:
        return memory_bytes(name, self.pid)


@contextlib.contextmanager
def _web(place: dict[str, str]) -> Iterator[_Web]:
    port = free_port(ADDRESS)
    argv = [sys.executable, "-m", "benchhub.web", "--host", ADDRESS, "--port", str(port)]
    process = subprocess.Popen(argv, env=os.environ | place)
    try:
        wait_until_it_answers(f"http://{ADDRESS}:{port}/healthz")
        yield _Web(f"http://{ADDRESS}:{port}", process.pid)
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextlib.contextmanager
def _bucket() -> Iterator[dict[str, str]]:
    """An S3 server whose bucket this process uses from now on; the same as settings for others, without links."""
    port = free_port(ADDRESS)
    endpoint = f"http://{ADDRESS}:{port}"
    program = Path(sys.executable).with_name("moto_server")
    process = subprocess.Popen([program, "-H", ADDRESS, "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        wait_until_it_answers(f"{endpoint}/moto-api/")
        request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")  # noqa: S310 - our own
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - our own
        options = {"bucket": BUCKET, "endpoint": endpoint, "region": "us-east-1", "prefix": ""}
        options |= {"key_id": "bench", "secret": "bench"}
        here: dict[str, Any] = {"BACKEND": "benchhub.files_on_s3.FilesOnS3", "OPTIONS": options}
        settings.STORAGES["files"] = here
        named = {f"BENCHHUB_BUCKET_{name}": value for name, value in {"ENDPOINT": endpoint, "LINKS": "no"}.items()}
        named |= {"BENCHHUB_BUCKET_KEY_ID": "bench", "BENCHHUB_BUCKET_SECRET": "bench"}
        yield {"BENCHHUB_BUCKET": BUCKET, "BENCHHUB_BUCKET_REGION": "us-east-1", **named}
    finally:
        process.terminate()
        process.wait(timeout=30)


def _run() -> tuple[Run, str]:
    user, _ = get_user_model().objects.get_or_create(username="bench", defaults={"email": "bench@localhost.invalid"})
    team, _ = Team.objects.get_or_create(slug="files", defaults={"name": "files"})
    member, _ = Member.objects.get_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
    run, _ = Run.objects.get_or_create(team=team, number=1, defaults={"state": Run.State.FINISHED})
    return run, issue(member, name="files", scopes=["read"])[1]


def _table(found: list[Found]) -> Iterator[str]:
    yield "| file | MB | s | process grew by, MB | the same |"
    yield "| --- | ---: | ---: | ---: | --- |"
    for one in found:
        same = "yes" if one.same else "NO"
        yield f"| {one.what} | {one.size_bytes / 1e6:,.0f} | {one.took_s:.1f} | {one.grown_bytes / 1e6:.1f} | {same} |"


if __name__ == "__main__":
    main()
