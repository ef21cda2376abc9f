"""What a server wrote, kept whole as files of the run: its log, and the files that its application names."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from agents.base.command import Command, script
from agents.base.errors import CommandError, KeepError
from agents.base.session import Session
from agents.events import AnyEvent, Logged
from agents.remote.fetching import fetch_end
from agents.remote.jobs import Job
from agents.running.collecting import KeepFile

ROOM_FOR_HIDING = 16
"""One part in so many of a file is left free: hidden secrets make a text longer."""
MAX_FILES = 50

# A link that leads out of the instance is none of its files.
_LIST = """
cd -- "$1" || exit 0
real=$(pwd -P)
shift
for pattern; do
  for file in $pattern; do
    case $(readlink -f -- "$file") in "$real"/*) [ ! -f "$file" ] || printf '%s\\n' "$file";; esac
  done
done | sort -u
"""


def log_file(name: str) -> str:
    """The file of the run that holds the whole log of this instance of the server, such as `server-2`."""
    return f"{name}.log"


def named_files(instance: str, patterns: tuple[str, ...]) -> Command:
    """Prints the files of the instance directory that fit one of the patterns, a path inside it per line."""
    return script(_LIST, instance, *patterns)


class ServerFiles:
    """The files of one instance of the server; kept again, they replace themselves."""

    def __init__(
        self,
        session: Session,
        instance: str,
        name: str,
        *,
        keep: KeepFile | None,
        max_file_bytes: int,
        emit: Callable[[AnyEvent], Awaitable[None]],
    ) -> None:
        self._session = session
        self._instance = instance
        self._name = name
        self._keep = keep
        self._most_bytes = max_file_bytes - max_file_bytes // ROOM_FOR_HIDING
        self._emit = emit

    async def keep_log(self, job: Job, path: str | None) -> None:
        """The log at `path`, else what the server printed to both outputs. CommandError when it cannot be read."""
        if path is not None:
            await self._keep_file(path, log_file(self._name))
            return
        if (await job.status()).truncated:
            await self._say("The server printed more than its host kept of it: the end is missing.", warning=True)
        for stream, name in (("out", log_file(self._name)), ("err", log_file(f"{self._name}-errors"))):
            if stream == "out" or await self._size(f"{job.directory}/{stream}"):
                await self._keep_file(f"{job.directory}/{stream}", name)

    async def keep_named(self, patterns: tuple[str, ...]) -> None:
        """The files of the instance directory that fit one of the patterns. CommandError when one cannot be read."""
        if not patterns:
            return
        result = await self._session.run(named_files(self._instance, patterns))
        files = result.check("Looking for files to keep").text.splitlines()
        for path in files[:MAX_FILES]:
            await self._keep_file(f"{self._instance}/{path}", f"{self._name}-{path.replace('/', '-')}"[-120:])
        if len(files) > MAX_FILES:
            await self._say(f"{len(files)} files fit keep_files; the first {MAX_FILES} are kept.", warning=True)
        if not files:
            await self._say(f"No file of the instance is like {', '.join(patterns)}.", warning=True)

    async def _keep_file(self, path: str, name: str) -> None:
        with tempfile.TemporaryDirectory(prefix="benchhub-server-file-") as folder:
            local = Path(folder) / "file"
            try:
                fetched = await fetch_end(self._session, path, local, max_bytes=self._most_bytes)
                if self._keep is not None:
                    await self._keep(name, local, "text/plain; charset=utf-8")
            except (CommandError, KeepError) as error:
                await self._say(f"{name} was not kept: {error.message}", warning=True)
                return
        cut = fetched.size_bytes > fetched.kept_bytes
        what = (
            f"the last {fetched.kept_bytes:,} of its {fetched.size_bytes:,} bytes are"
            if cut
            else f"all of its {fetched.kept_bytes:,} bytes are"
        )
        await self._say(f"{name}: {what} kept as a file of the run.", warning=cut)

    async def _size(self, path: str) -> int:
        result = await self._session.run(Command(("stat", "-c", "%s", "--", path)))
        return int(result.text.strip()) if result.ok else 0

    async def _say(self, text: str, *, warning: bool) -> None:
        await self._emit(Logged("runner", (text,), "warning" if warning else "info"))
