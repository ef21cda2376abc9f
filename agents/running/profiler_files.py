"""What profilers need on the hosts and where BenchHub runs: looked for before a change, and brought for the run."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.process_start import ProcessStart
from agents.base.session import Session
from agents.profilers.base.profiler import Library
from agents.profilers.choosing import Chosen
from agents.profiles.recordings import pieces_of
from agents.servers.base.server import Server
from agents.servers.command import CommandServer
from agents.spec import Part

ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}
CONVERT_TIMEOUT_S = 300.0
CONVERTER_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""So that it takes at most 340 MB in all."""


def folder_of(directory: str, role: str) -> str:
    """Where the profilers of a server have their files, inside the run's own directory on its host."""
    return f"{directory}/profilers-{role}"


def profiled(launch: ProcessStart, part: Part, directory: str) -> ProcessStart:
    """How the server is started so that the run's profilers can work."""
    for chosen in part.profilers:
        launch = chosen.profiler.prepared(launch, folder_of(directory, part.role), chosen.event)
    return launch


async def insist_on_profilers(session: Session, part: Part, libraries: Path | None) -> None:
    """PlanError when this host, or the machine that BenchHub runs on, lacks what a profiler of the run needs.

    The words name the package to install. Nothing was changed yet.
    """
    for chosen in part.profilers:
        for library in _libraries_of(chosen):
            library_file(library, libraries)
        if chosen.profiler.converter is not None and shutil.which("java") is None:
            raise PlanError(
                f"{chosen.name} writes recordings that are converted where BenchHub runs, and there is no Java.",
                hint="Install it there: apt-get install default-jre-headless. Or take async-profiler.",
            )
        if not (text := chosen.profiler.lacks(chosen.event)):
            continue
        result = await session.run(script(f"beside=$1\n{text}", _beside(part.server)))
        said = result.check(f"Looking for what {chosen.name} needs on {session.host}").text.strip().splitlines()
        if said:
            lacks, _, hint = said[0].partition("|")
            raise PlanError(f"{session.host} cannot be profiled with {chosen.name}: {lacks}.", hint=hint)


def library_file(library: Library, libraries: Path | None) -> Path:
    """The jar, proven by its checksum. PlanError when it is not there, or another one."""
    path = None if libraries is None else libraries / library.file
    if path is None or not path.is_file():
        raise PlanError(
            f"BenchHub has no {library.file} to bring to hosts.",
            hint="Run bin/get-profilers where BenchHub runs; BENCHHUB_PROFILERS is the directory that it prints.",
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != library.sha256:
        raise PlanError(
            f"{path} is not the published {library.file}: its checksum is another one.",
            hint="Remove it and run bin/get-profilers again.",
        )
    return path


async def bring(session: Session, part: Part, directory: str, libraries: Path | None) -> None:
    """Make the profilers' directory on the host and put into it what they need. Safe to call again."""
    if not part.profilers:
        return
    folder = folder_of(directory, part.role)
    made = await session.mutate(Command(("mkdir", "-p", "-m", "700", "--", folder)))
    made.check(f"Making a directory on {session.host}")
    machine = (await session.run(Command(("uname", "-m")))).text.strip()
    for chosen in part.profilers:
        for name, text in chosen.profiler.files().items():
            await session.put(f"{folder}/{name}", text.encode())
        for brought in chosen.profiler.brings:
            jar = library_file(brought.library, libraries)
            member = brought.member.format(arch=ARCHITECTURES.get(machine, machine))
            await session.put(f"{folder}/{brought.file}", await asyncio.to_thread(_member, jar, member), mode=0o700)


async def converted(library: Library, libraries: Path | None, files: Sequence[Path], folder: Path) -> list[Path]:
    """The profiles of these recordings, with their times, made by the library's program in `folder`.

    Several for a large one, to be read together. PlanError when it cannot, ParseError for a damaged recording.
    """
    jar = library_file(library, libraries)
    return await asyncio.to_thread(_converted, library, jar, files, folder)


def _converted(library: Library, jar: Path, files: Sequence[Path], folder: Path) -> list[Path]:
    found: list[Path] = []
    for recording in files:
        for piece in pieces_of(recording, folder / "piece"):
            into = folder / f"converted-{len(found)}"
            argv = ["java", *CONVERTER_OPTIONS, "-jar", str(jar), "-o", "otlp", "--threads", str(piece), str(into)]
            found.append(_convert(library, argv, into))
    return found


def _libraries_of(chosen: Chosen) -> list[Library]:
    found = [brought.library for brought in chosen.profiler.brings]
    return [*found, chosen.profiler.converter] if chosen.profiler.converter else found


def _convert(library: Library, argv: Sequence[str], into: Path) -> Path:
    try:
        done = subprocess.run(argv, capture_output=True, timeout=CONVERT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlanError(f"{library.file} did not come to an end: {error}") from error
    if done.returncode != 0 or not into.is_file():
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines() or [""]
        if any("OutOfMemoryError" in line for line in said):
            raise PlanError(
                f"{library.file} needs more memory for the recording than BenchHub gives it.",
                hint="Measure for a shorter time, or take async-profiler.",
            )
        raise PlanError(f"{library.file} could not convert the recording: {said[0][:300]}")
    return into


def _member(jar: Path, member: str) -> bytes:
    with zipfile.ZipFile(jar) as archive:
        try:
            return archive.read(member)
        except KeyError:
            raise PlanError(f"{jar.name} has no {member}.", hint="Take the profiler jfr or perf.") from None


def _beside(server: Server) -> str:
    """Where the server's own programs are, "" where its application does not say."""
    if home := getattr(server, "java_home", None):
        return f"{home}/bin"
    binary = server.argv[0] if isinstance(server, CommandServer) else str(getattr(server, "binary", ""))
    return binary.rpartition("/")[0]
