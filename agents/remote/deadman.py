"""The dead-man timer: a host that no worker has asked after for long ends the run's processes and puts itself back.

It is a job of its own in the run's directory. Each time a worker renews it, the deadline moves on; it ends when it is
disarmed, when the directory is gone, or when a newer holder of the host has been there. A restart of the host ends it,
too: runtime settings are gone then, and the worker that comes next puts the files back.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from agents.base.command import script
from agents.base.errors import AgentError, HostError
from agents.base.session import Session
from agents.remote.fencing import Hold
from agents.remote.jobs import Job
from agents.remote.journal import END_JOBS

LONGEST_SLEEP_S = 60
RENEWALS = 5
"""How often a timer is renewed within the time after which it goes off."""
JOB = "deadman"

logger = logging.getLogger(__name__)

# The fence's lock is held while the host is put back, so that no worker changes it at the same time. Reading the
# deadline again under the lock: a worker may have renewed it while this waited. A lock of the claim, held to the end
# and by no child of this, tells other logins that somebody looks after the machine.
_TIMER = f"""
dir=$1 fences=$2 claim=$3
cd "$dir" || exit 0
if [ -n "$claim" ] && [ -e "$claim" ]; then
  exec 7<"$claim"
  flock -w {LONGEST_SLEEP_S} 7
fi
due() {{
  [ -s deadline ] || exit 0
  read -r deadline fence <deadline
  read -r up rest </proc/uptime
  left=$((deadline - ${{up%.*}}))
  [ "$left" -le 0 ]
}}
while :; do
  until due; do
    [ "$left" -le {LONGEST_SLEEP_S} ] || left={LONGEST_SLEEP_S}
    sleep "$left" 7<&-
  done
  exec 9<>"$fences/lock" || exit 1
  flock 9
  due && break
  exec 9<&-
done
seen=$(cat "$fences/fence")
[ "$seen" -le "$fence" ] || exit 0
echo "no worker has been here for too long: ending the run's processes and putting this host back"
status=0
run=$dir
{END_JOBS}
[ ! -e journal/restore.sh ] || sh journal/restore.sh 7<&- 9<&- || status=$?
echo "$status" >fired.part && mv fired.part fired
[ "$status" -ne 0 ] || [ -z "$claim" ] || rm -f -- "$claim"
exit "$status"
"""

# The claim is renewed in its place: another file of that name would not have the timer's lock. Nobody judges it under
# the lock of its directory meanwhile; who cannot have that is not worse off, the timer speaks for the run.
_RENEW = """
umask 077
cd "$1" || exit 1
read -r up rest </proc/uptime
echo "$((${up%.*} + $2)) $3" >deadline.part && mv -f deadline.part deadline || exit 1
if [ -n "$4" ]; then
  read -r boot </proc/sys/kernel/random/boot_id
  exec 8<"${4%/*}"
  if flock -w 5 8 && [ -f "$4" ] && read -r state rest <"$4"; then
    [ "$state" != 0 ] || state=$5
    printf '%s %s %015d' "$state" "$boot" $((${up%.*} + $2)) 1<>"$4"
  fi
fi
[ ! -e fired ] || cat fired
"""

_DISARM = """
rm -f -- "$1/deadline"
[ -z "$2" ] || [ ! -f "$2" ] || printf %s "$3" 1<>"$2"
"""

_LEAVE = 'rm -f -- "$1"'

# Parts of a run that share a host and a login share its directory there; each has written down its claim.
_SHARED_WITH = """
for file in "$1"/claim-*; do
  [ ! -e "$file" ] || [ "${file##*/claim-}" = "$2" ] || echo "${file##*/claim-}"
done
"""

# Nothing of this part is left there: whoever surveys the host finds the journal of the last server settled.
_GIVE_UP_SHARE = """
cd -- "$1" || exit 1
[ "$3" != yes ] || : >settled || exit 1
rm -f -- "claim-$2"
"""


@dataclass(frozen=True)
class DeadMan:
    """The timer of one run on one host, and the run's claim of the machine, which lives as long as it does.

    `journalled`: from now on the host has changes to undo, and the claim says so. `servers` are the parts of the run
    that have any: those that share the directory share the journal and its timer, too.
    """

    session: Session
    directory: str
    hold: Hold
    after_s: int
    journalled: bool = True
    role: str = "sut"
    servers: frozenset[str] = frozenset({"sut"})

    async def arm(self) -> None:
        """Start the timer unless it runs. HostError when it has gone off already."""
        await self.renew()
        command = script(_TIMER, self.directory, self.hold.directory, self.hold.claim)
        await self._job().start(command, cookie=secrets.token_hex(16), max_output_bytes=1 << 16)

    async def renew(self) -> None:
        """Move the deadline on. HostError when the timer has gone off: the host is no longer as the run needs it."""
        changed = "1" if self.journalled else "0"
        fence, claim = str(self.hold.fence), self.hold.claim
        command = script(_RENEW, self.directory, str(self.after_s), fence, claim, changed)
        result = await self.session.mutate(command)
        if result.check(f"Renewing the dead-man timer on {self.session.host}").text.strip():
            raise HostError(
                f"{self.session.host} put itself back, because no worker had asked after it for a long time.",
                hint="The run's processes were ended there. Find out why no worker was running, then launch it again.",
            )

    async def disarm(self, *, left: bool = False) -> None:
        """End the timer; nothing of it is left but its files. `left`: with changes, which a person was told of."""
        state = "2" if left and self.journalled else "0"
        await self.session.mutate(script(_DISARM, self.directory, self.hold.claim, state))
        await self._job().kill(grace_s=1)

    async def shared_with(self) -> frozenset[str]:
        """The other parts of the run that need its directory on this host still."""
        result = await self.session.run(script(_SHARED_WITH, self.directory, self.role))
        return frozenset(result.check(f"Looking at {self.directory} on {self.session.host}").text.split())

    async def give_up_share(self, *, settle: bool) -> None:
        """Leave the directory to the other parts of the run. `settle`: none of those has anything in its journal."""
        result = await self.session.mutate(script(_GIVE_UP_SHARE, self.directory, self.role, "yes" if settle else ""))
        result.check(f"Leaving {self.directory} on {self.session.host}")

    async def leave(self) -> None:
        """Give the machine to whoever wants it next: the last change of a run that has left nothing there."""
        if self.hold.claim:
            await self.session.mutate(script(_LEAVE, self.hold.claim))

    def _job(self) -> Job:
        return Job(self.session, f"{self.directory}/{JOB}")


class Renewal:
    """While it is open, all hosts of a run know that a worker looks after them. `check` raises once one gave it up.

    On the way back nothing is armed that does not run (`arm` False): the host may have put itself back already.
    """

    def __init__(self, timers: Sequence[DeadMan], *, arm: bool = True) -> None:
        self._timers = tuple(timers)
        self._arm = arm
        self._tasks: list[asyncio.Task[None]] = []
        self._gone_off: HostError | None = None

    async def __aenter__(self) -> Renewal:
        if self._arm:
            armed = await asyncio.gather(*(timer.arm() for timer in self._timers), return_exceptions=True)
            for failure in armed:  # only now: none of them may still be at it when the run goes back
                if isinstance(failure, BaseException):
                    raise failure
        # A task for each: renewing may wait long for a host that is away, and the others are not to notice.
        self._tasks = [asyncio.create_task(self._renew(timer)) for timer in self._timers]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        if self._gone_off is not None:
            raise self._gone_off

    async def _renew(self, timer: DeadMan) -> None:
        while True:
            await asyncio.sleep(timer.after_s / RENEWALS)
            try:
                await timer.renew()
            except HostError as error:
                self._gone_off = error
                return
            except AgentError as error:  # the run's own commands notice it, too, and decide what to do
                logger.info("the dead-man timer of %s was not renewed: %s", timer.session.host, error)
            except Exception:  # whatever it is: without the next renewal the host would end a run that lives
                logger.exception("the dead-man timer of %s was not renewed", timer.session.host)
