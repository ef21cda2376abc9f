"""Taking a machine for a run: one installation of BenchHub at a time, whatever logins and homes they use there.

Each login writes a claim of its own into a directory that all logins see, after it has read those of the others under
that directory's lock. A claim lives for as long as the run's dead-man timer does (it holds a lock of the claim, which
the kernel ends with it), and for a while before the timer runs. A claim that does not live stands in nobody's way; what
its run has left on the machine is looked at next (`agents.remote.leftovers`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agents.base.command import Command, CommandResult, script
from agents.base.errors import CommandError, FenceError, HostError, OccupiedError
from agents.base.session import Session
from agents.remote import survey
from agents.remote.fencing import LOCK_WAIT_S, Hold, last_words, seen_fence
from agents.remote.machine_place import CLAIM_PREFIX, HOLDER

LOOK_AGAIN_S = 10.0
"""How long between two looks at a host that another installation works on: each look is load of our own there."""

_UNFIT_STATUS = 78
_UNFIT_TEXT = "benchhub-home: "
_OLD_STATUS = 97
_OCCUPIED_STATUS = 98
_BUSY_STATUS = 75

# The state of a claim is its first character: 0 = nothing was changed yet, 1 = changed, 2 = left to a person.
_TAKE = (
    survey.SURVEY
    + HOLDER
    + f"""
key=$1 role=$2 fence=$3 installation=$4 installation_name=$5 for_s=$6 wait_s=$7
umask 077
find_base && find_place || exit 1
find_unfit
[ -z "$unfit" ] || {{ echo "{_UNFIT_TEXT}$unfit" >&2; exit {_UNFIT_STATUS}; }}
fences=$base/fence
mkdir -p -- "$fences" || exit 1
[ -e "$root/machine" ] || (set -C; echo "$here" >"$root/machine") 2>/dev/null
find_base && fences=$base/fence && mkdir -p -- "$fences" || exit 1
exec 9>>"$fences/lock"
flock -w "$wait_s" 9 || exit {_BUSY_STATUS}
exec 8<"$place"
flock -w "$wait_s" 8 || {{ echo "another user holds a lock of $place" >&2; exit {_BUSY_STATUS}; }}
read_holder || exit 1
case $whose in
  '' | - | "$installation") own_seen=$seen ;;
  *) own_seen=0 ;;
esac
if [ "$own_seen" = 0 ] && [ -s "$fences/seen.$installation" ]; then read -r own_seen <"$fences/seen.$installation"; fi
if [ "$fence" -lt "$own_seen" ]; then
  echo "the host has seen fence $own_seen, this is $fence" >&2
  exit {_OLD_STATUS}
fi
if find_foreign; then survey; exit {_OCCUPIED_STATUS}; fi
case $whose in
  '' | - | "$installation") ;;
  *) echo "$seen" >"$fences/seen.$whose" || exit 1 ;;
esac
if [ "$fence" != "$seen" ] || [ "$whose" != "$installation" ]; then hold || exit 1; fi
run=$base/runs/$key
mkdir -p -- "$run/files" "$run/jobs" || exit 1
printf '%s\\n' "$installation $fence $boot_now" "$installation_name" >"$run/owner" || exit 1
claim=$place/{CLAIM_PREFIX}.$installation.$key.$role
printf '%s\\n' "$claim" >"$run/claim-$role" || exit 1
state=0
if [ -e "$claim" ] || [ -L "$claim" ]; then
  [ -f "$claim" ] && [ ! -L "$claim" ] && [ -O "$claim" ] || {{ echo "$claim is not this login's" >&2; exit 1; }}
  read_claim "$claim" && state=$c_state
else
  (set -C; : >"$claim") || exit 1
  chmod 644 "$claim" || exit 1
fi
read -r up rest </proc/uptime
until=$(printf %015d $((${{up%.*}} + for_s)))
{{ printf '%s\\n' "$state $boot_now $until $installation $fence $key $role $(id -un) $(date +%s)" "$run" \\
  "$installation_name"; }} 1<>"$claim" || exit 1
printf 'taken\\t%s\\t%s\\n' "$(cd -- "$run" && pwd -P)" "$claim"
"""
)


@dataclass(frozen=True)
class Taken:
    """A machine that is the run's. `directory` is the run's own one on it, `claim` what tells other logins so."""

    directory: str
    claim: str


@dataclass(frozen=True)
class Claimant:
    """The run that wants a machine, and for how long its claim counts before a timer stands behind it."""

    key: str
    role: str
    for_s: int

    def command(self, hold: Hold) -> Command:
        """Takes the machine unless a foreign claim lives there, in one round trip; may be repeated."""
        words = hold.installation_words
        return script(
            _TAKE, self.key, self.role, str(hold.fence), *words, str(self.for_s), str(LOCK_WAIT_S), timeout_s=90
        )


async def take(
    session: Session,
    claimant: Claimant,
    hold: Hold,
    *,
    patience_s: Callable[[], float],
    on_trouble: Callable[[str], Awaitable[None]] | None = None,
    check: Callable[[], None] = lambda: None,
) -> Taken:
    """The machine for this run, once no other installation works on it. Of `hold`: the fence and the installation.

    It waits for `patience_s`, asked anew at each look, or until `check` raises. OccupiedError names who has the
    machine; FenceError = a newer holder of this installation has been there; HostError = `.benchhub` is no place for
    runs.
    """
    asked_s = time.monotonic()
    told = False
    while True:
        result = await session.run(claimant.command(hold), max_output_bytes=survey.MAX_BYTES)
        if result.exit_status not in (_OCCUPIED_STATUS, _BUSY_STATUS):
            return _taken(session.host, result)
        who = _holder(session.host, result, hold)
        if time.monotonic() - asked_s + LOOK_AGAIN_S > patience_s():
            raise OccupiedError(
                f"{session.host} is used by {who}.",
                hint="Only one BenchHub may work on a machine at a time. Wait until that run has ended, or agree with "
                "its people who uses the host when.",
            )
        if not told and on_trouble is not None:
            told = True
            await on_trouble(f"{session.host} is used by {who}. Waiting for up to {patience_s():.0f} s.")
        await asyncio.sleep(LOOK_AGAIN_S)
        check()


def _taken(host: str, result: CommandResult) -> Taken:
    if result.exit_status == _OLD_STATUS:
        raise FenceError(
            f"{host} belongs to a newer holder: {last_words(result)}",
            hint="Nothing was changed. The newer holder goes on with the run; this one must stop.",
            seen=seen_fence(last_words(result)),
        )
    if result.exit_status == _UNFIT_STATUS and last_words(result).startswith(_UNFIT_TEXT):
        raise HostError(
            f"{host} has no place for runs: {last_words(result).removeprefix(_UNFIT_TEXT)}.",
            hint=survey.UNFIT_HINT,
        )
    result.check(f"Taking {host} for the run")
    fields = result.text.rstrip("\n").split("\t")
    if len(fields) != 3 or fields[0] != "taken":
        raise CommandError(f"Taking {host} for the run gave an answer that makes no sense: {result.text[:200]!r}")
    return Taken(fields[1], fields[2])


def _holder(host: str, result: CommandResult, hold: Hold) -> str:
    if result.exit_status == _BUSY_STATUS:
        return f"somebody who holds a lock there for longer than {LOCK_WAIT_S} s"
    found = survey.parse(result.stdout)
    claims = [claim for claim in found.claims if claim.lives and claim.installation.id != hold.installation.id]
    return str(claims[0]) if claims else "another BenchHub"
