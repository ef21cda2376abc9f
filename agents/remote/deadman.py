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
from agents.remote.jobs import Job
from agents.remote.journal import END_JOBS

LONGEST_SLEEP_S = 60
RENEWALS = 5
"""How often a timer is renewed within the time after which it goes off."""
JOB = "deadman"

logger = logging.getLogger(__name__)

# The fence's lock is held while the host is put back, so that no worker changes it at the same time. Reading the
# deadline again under the lock: a worker may have renewed it while this waited.
_TIMER = f"""
dir=$1 fences=$2
cd "$dir" || exit 0
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
    sleep "$left"
  done
  exec 9<"$fences/lock" || exit 1
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
[ ! -e journal/restore.sh ] || sh journal/restore.sh 9<&- || status=$?
echo "$status" >fired.part && mv fired.part fired
exit "$status"
"""

_RENEW = """
umask 077
cd "$1" || exit 1
read -r up rest </proc/uptime
echo "$((${up%.*} + $2)) $3" >deadline.part && mv -f deadline.part deadline || exit 1
[ ! -e fired ] || cat fired
"""

_DISARM = 'rm -f -- "$1/deadline"'


@dataclass(frozen=True)
class DeadMan:
    """The timer of one run on one host. `fence_directory` is where the host keeps the greatest fence it has seen."""

    session: Session
    directory: str
    fence_directory: str
    fence: int
    after_s: int

    async def arm(self) -> None:
        """Start the timer unless it runs. HostError when it has gone off already."""
        await self.renew()
        command = script(_TIMER, self.directory, self.fence_directory)
        await self._job().start(command, cookie=secrets.token_hex(16), max_output_bytes=1 << 16)

    async def renew(self) -> None:
        """Move the deadline on. HostError when the timer has gone off: the host is no longer as the run needs it."""
        command = script(_RENEW, self.directory, str(self.after_s), str(self.fence))
        result = await self.session.mutate(command)
        if result.check(f"Renewing the dead-man timer on {self.session.host}").text.strip():
            raise HostError(
                f"{self.session.host} put itself back, because no worker had asked after it for a long time.",
                hint="The run's processes were ended there. Find out why no worker was running, then launch it again.",
            )

    async def disarm(self) -> None:
        """End the timer; nothing of it is left but its files."""
        await self.session.mutate(script(_DISARM, self.directory))
        await self._job().kill(grace_s=1)

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
