"""Fences checked on the host: a worker that slept past its lease must not change a host that another one holds now.

A fence is the number that the database gave out with the lease, greater at each claim. The host keeps the greatest one
it has seen, and a command with a smaller one does not start. What the older holder had begun goes on to its end, and
the newer one waits for that.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from agents.base.command import NTH_CONNECTION, Command, CommandResult, script
from agents.base.errors import ConnectError, FenceError
from agents.base.installation import UNNAMED, Installation
from agents.base.session import Session, Stream
from agents.remote.link import PATIENCE_S
from agents.remote.machine_place import CLAIMS, HOLDER
from agents.remote.transfer import put_command

LOCK_WAIT_S = 10
MOST_TAKES = 3
"""How often one change takes a host back; somebody removes the claim each time, then."""
_LOST_STATUS = 96
_LOST_TEXT = "benchhub-lost: "
_REFUSED_STATUS = 97
_REFUSED_TEXT = "benchhub-fence: "
_BUSY_STATUS = 75
_BUSY_TEXT = "benchhub-fence is held"

# The lock is held while the command runs, so that two holders never change the host at once; the command does not
# inherit it, so that a job which it leaves behind does not hold it. Under sudo the files stay the login user's.
# The input is here in full before the lock is asked for: whoever sends it may be frozen half way. Its file has no name,
# so that nothing of it stays, however this ends.
#
# A link that was cut repeats a command over its next connection. What the older one still has on the way may arrive
# much later, when the same holder has gone on and undone it: so each link's newest connection is known, too.
#
# Who has lost the machine to another installation, or its claim, is told so before anything is done: it has to take the
# host again. `place` is empty for a run that an older version began.
_FENCE = (
    HOLDER
    + CLAIMS
    + f"""
fence=$1 fences=$2 wait_s=$3 input_bytes=$4 link=$fences/link-$5 nth=$6
installation=$7 installation_name=$8 place=$9 claim=${{10}}
shift 10
umask 077
[ -d "$fences" ] || {{ mkdir -p -- "$fences" && own "$fences"; }} || exit 1
[ -e "$fences/lock" ] || {{ : >>"$fences/lock" && own "$fences/lock"; }} || exit 1
if [ "$input_bytes" -gt 0 ]; then
  input="$fences/input.$$"
  exec 7>"$input" 8<"$input" && rm -f -- "$input" && cat >&7 && exec 7>&- 0<&8 8<&- || exit 1
  have=$(wc -c </proc/self/fd/0)
  [ "$have" -eq "$input_bytes" ] || {{ echo "only $have of $input_bytes bytes arrived" >&2; exit 1; }}
fi
exec 9<>"$fences/lock"
flock -w "$wait_s" 9 || {{ echo "{_BUSY_TEXT}" >&2; exit {_BUSY_STATUS}; }}
read_holder || exit 1
case $whose in
  '' | - | "$installation") ;;
  *) echo "{_LOST_TEXT}${{whose_name:-another BenchHub}} has taken it" >&2; exit {_LOST_STATUS} ;;
esac
if [ "$fence" -lt "$seen" ]; then
  echo "{_REFUSED_TEXT}the host has seen fence $seen, this is $fence" >&2
  exit {_REFUSED_STATUS}
fi
if [ -n "$place" ]; then
  if find_foreign; then
    echo "{_LOST_TEXT}${{c_name:-another BenchHub}} has taken it (login $c_login)" >&2
    exit {_LOST_STATUS}
  fi
  [ -e "$claim" ] || {{ echo "{_LOST_TEXT}$claim is gone" >&2; exit {_LOST_STATUS}; }}
fi
if [ "$fence" -gt "$seen" ] || [ "$whose" != "$installation" ]; then hold || exit 1; fi
known=0
[ ! -s "$link" ] || read -r known <"$link"
case $nth in *[!0-9]*) nth=0 ;; esac
if [ "$nth" -lt "$known" ]; then
  echo "{_BUSY_TEXT} by a newer connection" >&2
  exit {_BUSY_STATUS}
fi
[ "$nth" -eq "$known" ] || {{ echo "$nth" >"$link" && own "$link"; }}
"$@" 9<&-
"""
)


@dataclass(frozen=True)
class Hold:
    """Whose a host is while a run works on it: what each change there is checked against.

    `place` is the directory that all logins of the machine see, `claim` the run's file in it; both empty = none was
    made, by an older version or where only one installation can be.
    """

    fence: int
    directory: str
    installation: Installation = UNNAMED
    place: str = ""
    claim: str = ""

    @property
    def installation_words(self) -> tuple[str, str]:
        """The installation's id and name as the scripts on the host take them."""
        return self.installation.id or "-", " ".join(self.installation.name.split())


def fence_directory(run_directory: str) -> str:
    """Where the host keeps its fence: beside the directories of all runs (`.benchhub/runs/KEY`)."""
    return run_directory.rpartition("/runs/")[0] + "/fence"


def fenced(command: Command, hold: Hold, link: str = "") -> Command:
    """`command` behind a check, in the same round trip, that the host is still `hold`'s.

    It waits at most `LOCK_WAIT_S` for another fenced command to end. Refused, since a greater fence has been seen
    there, it exits 97; since another installation has the host, or the claim is gone, 96. Then nothing was done. It
    does not start either when it comes over a connection of `link` that is not the newest; nobody waits for it then.
    ValueError: a negative fence.
    """
    if hold.fence < 0:
        raise ValueError("a fence cannot be negative")
    check = script(
        _FENCE,
        str(hold.fence),
        hold.directory,
        str(LOCK_WAIT_S),
        str(len(command.stdin)),
        link,
        NTH_CONNECTION,
        *hold.installation_words,
        hold.place,
        hold.claim,
        *command.argv,
    )
    return replace(command, argv=check.argv, timeout_s=command.timeout_s + LOCK_WAIT_S)


def seen_fence(said: str) -> int | None:
    """The fence that the host names in its refusal."""
    found = re.search(r"has seen fence ([0-9]{1,18})\b", said, re.ASCII)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class FencedSession:
    """A session whose changes (`mutate`, `put`) are refused with FenceError once a newer holder has changed the host.

    `hold.directory` is absolute, the same for every holder of the host, and outlives a run. `link` tells this holder's
    links to the host apart, where it has several. While a change of another holder goes on there, `on_trouble` is told
    once, and a change is tried again for `patience_s`, asked anew at each try; then it is a ConnectError. `take` gets a
    host back that another installation has taken meanwhile, or raises; without it that is a FenceError.
    """

    session: Session
    hold: Hold
    link: str = ""
    patience_s: Callable[[], float] = lambda: PATIENCE_S
    on_trouble: Callable[[str], Awaitable[None]] | None = None
    take: Callable[[], Awaitable[object]] | None = None

    @property
    def host(self) -> str:
        return self.session.host

    async def mutate(self, command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        asked_s = time.monotonic()
        told, taken = False, 0
        while True:
            result = await self._attempt(command, max_output_bytes)
            if result.exit_status == _LOST_STATUS and last_words(result).startswith(_LOST_TEXT):
                if self.take is None or taken == MOST_TAKES:
                    raise FenceError(
                        f"{self.host} is not this run's any more: {last_words(result).removeprefix(_LOST_TEXT)}.",
                        hint="Nothing was changed. Wait until the other BenchHub has left the host.",
                    )
                await self.take()
                taken += 1
                continue
            if not (result.exit_status == _BUSY_STATUS and last_words(result).startswith(_BUSY_TEXT)):
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
        result = await self.session.run(fenced(command, self.hold, self.link), max_output_bytes=max_output_bytes)
        if result.exit_status == _REFUSED_STATUS and last_words(result).startswith(_REFUSED_TEXT):
            raise FenceError(
                f"{self.host} belongs to a newer holder: {last_words(result)}",
                hint="Nothing was changed. The newer holder goes on with the run; this one must stop.",
                seen=seen_fence(last_words(result)),
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


def last_words(result: CommandResult) -> str:
    """The last line of what the host complained of; it may be another user's text, so only what can be printed.

    What comes before it may be sudo that does not know the host's own name, or a shell that misses a language.
    """
    lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
    return "".join(character if character.isprintable() else "?" for character in lines[-1]) if lines else ""
