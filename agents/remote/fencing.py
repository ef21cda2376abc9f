"""Fences checked on the host: a worker that slept past its lease must not change a host that another one holds now.

A fence is the number that the database gave out with the lease, greater at each claim. The host keeps the greatest one
it has seen, and a command with a smaller one does not start. What the older holder had begun goes on to its end, and
the newer one waits for that.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from agents.base.command import NTH_CONNECTION, Command, CommandResult, script
from agents.base.errors import ConnectError, FenceError
from agents.base.session import Session, Stream
from agents.remote.link import PATIENCE_S
from agents.remote.transfer import put_command

LOCK_WAIT_S = 10
_REFUSED_STATUS = 97
_REFUSED_TEXT = b"benchhub-fence: "
_BUSY_STATUS = 75
_BUSY_TEXT = b"benchhub-fence is held"

# The lock is held while the command runs, so that two holders never change the host at once; the command does not
# inherit it, so that a job which it leaves behind does not hold it. Under sudo the files stay the login user's.
# The input is here in full before the lock is asked for: whoever sends it may be frozen half way. Its file has no name,
# so that nothing of it stays, however this ends.
#
# A link that was cut repeats a command over its next connection. What the older one still has on the way may arrive
# much later, when the same holder has gone on and undone it: so each link's newest connection is known, too.
_FENCE = f"""
fence=$1 dir=$2 wait_s=$3 input_bytes=$4 link=$dir/link-$5 nth=$6
shift 6
umask 077
own() {{ [ -z "${{SUDO_UID-}}" ] || chown "$SUDO_UID" "$@"; }}
[ -d "$dir" ] || {{ mkdir -p -- "$dir" && own "$dir"; }} || exit 1
[ -e "$dir/lock" ] || {{ : >>"$dir/lock" && own "$dir/lock"; }} || exit 1
if [ "$input_bytes" -gt 0 ]; then
  input="$dir/input.$$"
  exec 7>"$input" 8<"$input" && rm -f -- "$input" && cat >&7 && exec 7>&- 0<&8 8<&- || exit 1
  have=$(wc -c </proc/self/fd/0)
  [ "$have" -eq "$input_bytes" ] || {{ echo "only $have of $input_bytes bytes arrived" >&2; exit 1; }}
fi
exec 9<"$dir/lock"
flock -w "$wait_s" 9 || {{ echo "{_BUSY_TEXT.decode()}" >&2; exit {_BUSY_STATUS}; }}
seen=0
[ ! -e "$dir/fence" ] || seen=$(cat "$dir/fence") || exit 1
case $seen in '' | *[!0-9]*) echo "$dir/fence does not hold a number" >&2; exit 1 ;; esac
if [ "$fence" -lt "$seen" ]; then
  echo "benchhub-fence: the host has seen fence $seen, this is $fence" >&2
  exit {_REFUSED_STATUS}
fi
if [ "$fence" -gt "$seen" ]; then
  echo "$fence" >"$dir/fence.part" && own "$dir/fence.part" && sync "$dir/fence.part" \\
    && mv -f -- "$dir/fence.part" "$dir/fence" || exit 1
  rm -f -- "$dir"/link-*
fi
known=0
[ ! -s "$link" ] || read -r known <"$link"
case $nth in *[!0-9]*) nth=0 ;; esac
if [ "$nth" -lt "$known" ]; then
  echo "{_BUSY_TEXT.decode()} by a newer connection" >&2
  exit {_BUSY_STATUS}
fi
[ "$nth" -eq "$known" ] || {{ echo "$nth" >"$link" && own "$link"; }}
"$@" 9<&-
"""


def fence_directory(run_directory: str) -> str:
    """Where the host keeps its fence: beside the directories of all runs (`.benchhub/runs/KEY`)."""
    return run_directory.rpartition("/runs/")[0] + "/fence"


def fenced(command: Command, fence: int, directory: str, link: str = "") -> Command:
    """`command` behind a check, in the same round trip, that no greater fence has been seen in `directory` of the host.

    It waits at most `LOCK_WAIT_S` for another fenced command to end. Refused, it exits 97 and nothing was done. It does
    not start either when it comes over a connection of `link` that is not the newest one; nobody waits for it then.
    ValueError: a negative fence.
    """
    if fence < 0:
        raise ValueError("a fence cannot be negative")
    check = script(
        _FENCE, str(fence), directory, str(LOCK_WAIT_S), str(len(command.stdin)), link, NTH_CONNECTION, *command.argv
    )
    return replace(command, argv=check.argv, timeout_s=command.timeout_s + LOCK_WAIT_S)


@dataclass(frozen=True)
class FencedSession:
    """A session whose changes (`mutate`, `put`) are refused with FenceError once a newer holder has changed the host.

    `directory` is absolute, the same for every holder of the host, and outlives a run. `link` tells this holder's links
    to the host apart, where it has several. While a change of another holder goes on there, `on_trouble` is told once,
    and a change is tried again for `patience_s`, asked anew at each try; then it is a ConnectError.
    """

    session: Session
    fence: int
    directory: str
    link: str = ""
    patience_s: Callable[[], float] = lambda: PATIENCE_S
    on_trouble: Callable[[str], Awaitable[None]] | None = None

    @property
    def host(self) -> str:
        return self.session.host

    async def mutate(self, command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        asked_s = time.monotonic()
        told = False
        while True:
            result = await self._attempt(command, max_output_bytes)
            if not (result.exit_status == _BUSY_STATUS and result.stderr.startswith(_BUSY_TEXT)):
                return result
            waited_s = time.monotonic() - asked_s
            if waited_s > self.patience_s():
                raise ConnectError(
                    f"{self.host} takes no change: another one has been going on there for {waited_s:.0f} s.",
                    hint="It may be putting itself back at this moment; BenchHub looks again later.",
                )
            if not told and self.on_trouble is not None:
                told = True
                tries = f"Trying again for up to {self.patience_s():.0f} s."
                await self.on_trouble(f"{self.host} takes no change yet, another one is going on there. {tries}")

    async def _attempt(self, command: Command, max_output_bytes: int) -> CommandResult:
        """One try, which waits on the host for LOCK_WAIT_S."""
        result = await self.session.run(
            fenced(command, self.fence, self.directory, self.link), max_output_bytes=max_output_bytes
        )
        if result.exit_status == _REFUSED_STATUS and result.stderr.startswith(_REFUSED_TEXT):
            raise FenceError(
                f"{self.host} belongs to a newer holder: {result.stderr.decode('utf-8', 'replace').strip()}",
                hint="Nothing was changed. The newer holder goes on with the run; this one must stop.",
            )
        return result

    async def put(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        (await self.mutate(put_command(path, data, mode=mode))).check(f"Writing {path} on {self.host}")

    async def run(self, command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        return await self.session.run(command, max_output_bytes=max_output_bytes)

    async def start(self, command: Command) -> Stream:
        return await self.session.start(command)

    async def get(self, path: str, *, offset: int = 0, max_bytes: int = 1 << 20) -> bytes:
        return await self.session.get(path, offset=offset, max_bytes=max_bytes)

    async def close(self) -> None:
        await self.session.close()
