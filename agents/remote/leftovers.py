"""What other runs have left on a host: put back when nobody looks after it any more, and told when that cannot be.

Asked after a host was taken and before its first snapshot, which would otherwise take another run's tuning for the
host's own state; and once more before the host is called as it was before.
"""

from __future__ import annotations

from agents.base.command import script
from agents.base.installation import Installation
from agents.remote import survey
from agents.remote.deadman import JOB
from agents.remote.fencing import FencedSession
from agents.remote.jobs import Job
from agents.remote.journal import END_JOBS
from agents.remote.machine_place import GIVE_UP_CLAIMS
from agents.remote.survey import Claim, RunOnHost

UNDO_TIMEOUT_S = 600.0

# `fired` is what the run's own timer would have left: a worker that comes back to the run is told by it.
_UNDO = f"""
umask 077
run=$1
cd -- "$run" || exit 1
rm -f deadline
{END_JOBS}
if [ "$2" -gt 0 ]; then sh journal/restore.sh; else true; fi
status=$?
echo "$status" >fired.part && mv -f fired.part fired
[ "$status" -eq 0 ] || exit "$status"
{GIVE_UP_CLAIMS}
"""

_SETTLE = f"""
run=$1
: >"$run/settled" || exit 1
{GIVE_UP_CLAIMS}
"""


class Leftovers:
    """Of other runs on one host, which `session` holds. `told` says what was put back, for the run's log.

    `force` also puts back what was left to a person of another installation.
    """

    def __init__(self, session: FencedSession, directory: str, *, force: bool = False) -> None:
        self._session = session
        self._directory = directory
        self._force = force
        self.told: list[str] = []

    async def clear(self) -> tuple[str, ...]:
        """Put back what can be; what is still on the host of other runs, one plain sentence each."""
        found = await survey.read(self._session)
        problems = [await self._clear_run(run) for run in found.runs if run.directory != self._directory]
        problems += [self._judge(claim, found.base) for claim in found.claims]
        return tuple(problem for problem in problems if problem)

    async def _clear_run(self, run: RunOnHost) -> str:
        foreign = self._foreign(run.installation)
        name = f"run {run.key} of {run.installation}" if foreign else f"run {run.key}"
        if foreign and run.timer == "live":
            return f"{name} is at work in {run.directory}"
        if run.undone or run.jobs or (foreign and run.fate == "left" and self._force):
            return await self._undo(run, name)
        if run.fate == "left" and foreign:
            return (
                f"{name} has left changes to a person; restore it there, or run {run.directory}/journal/restore.sh, "
                f"or remove {run.directory} when they may stay"
            )
        if run.fate == "left":  # this installation has called the host ready since
            await self._session.mutate(script(_SETTLE, run.directory))
        return ""

    async def _undo(self, run: RunOnHost, name: str) -> str:
        await Job(self._session, f"{run.directory}/{JOB}").kill(grace_s=1)
        entries = 0 if run.fate == "restored" else run.entries
        undo = script(_UNDO, run.directory, str(entries), timeout_s=UNDO_TIMEOUT_S)
        result = await self._session.mutate(undo)
        if result.ok:
            self.told.append(f"{name} had left something on {self._session.host}; it was ended and put back.")
            return ""
        said = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
        why = f": {said[-1]}" if said else ""
        return f"{name} has left changes, and {run.directory}/journal/restore.sh could not put them back{why}"

    def _judge(self, claim: Claim, base: str) -> str:
        """Of another login, whose home is closed to this one. Those of this home were looked at as runs."""
        if not self._foreign(claim.installation) or claim.lives or claim.changes == "none":
            return ""
        if claim.directory.startswith(f"{base}/"):
            return ""
        return (
            f"{claim} has left changes, and nobody looks after them; run {claim.directory}/journal/restore.sh as that "
            f"login, or remove {claim.path} when they may stay"
        )

    def _foreign(self, installation: Installation) -> bool:
        return installation.id not in ("", self._session.hold.installation.id)
