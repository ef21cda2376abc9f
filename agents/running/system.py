"""All servers of a run: started one behind the other, captured together, and all still there at the end of the load."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agents.base.redaction import masked
from agents.events import ConfigurationCaptured, Role
from agents.record import Record
from agents.running.control import Control
from agents.running.host_links import HostLinks
from agents.running.serving import Serving
from agents.spec import RunSpec
from agents.system import MEMBER_PATTERN

MEMBERS = "members."
"""How settings of further members begin: `members.database.postgresql.shared_buffers`."""
HOST = "host"
"""Behind it stand the facts of a member's machine: `members.database.host.cpu.model`."""
OF_A_MEMBER = re.compile(rf"members\.({MEMBER_PATTERN})\.(.+)", re.DOTALL)
"""Such a path: the member's role, and the path as a single server has it."""


class System:
    """The servers in the order in which they start. Safe to call again, as `Serving` is."""

    def __init__(
        self, spec: RunSpec, reach: HostLinks, record: Record, control: Control, check: Callable[[], None]
    ) -> None:
        self._reach = reach
        self._record = record
        self._emit = control.emit_into(record)
        alone = not spec.members
        self._each = [
            Serving(part, "The server" if alone else f"{part.title} on {part.host.name}", reach, record, control, check)
            for part in spec.parts_in_order
        ]

    def pids(self, role: Role) -> Sequence[int]:
        """The processes of the server with this role that are known to have started."""
        return next(serving.pids for serving in self._each if serving.part.role == role)

    async def start(self) -> None:
        """Start each server once those that it waits for are ready, and capture what all of them really have."""
        for serving in self._each:
            await serving.start()
        await self._capture()

    async def settle(self) -> None:
        """Let the servers finish what the warm-up left. CommandError when one of them cannot."""
        for serving in self._each:
            await serving.settle()

    async def insist(self) -> None:
        """HostError when the host of a server was restarted, CommandError when an instance ended by itself.

        In the order of starting: a server that ends takes those with it that waited for it.
        """
        for serving in self._each:
            await serving.insist()

    async def salvage(self) -> None:
        """Keep what the servers wrote in a run that did not come to its end."""
        for serving in self._each:
            await serving.salvage()

    async def keep_last_words(self) -> None:
        """What the servers wrote; HostError or CommandError when one of them did not live through the load."""
        for serving in self._each:
            await serving.keep_last_words()
        await self.insist()
        for serving in self._each:
            await serving.read_gc_logs()

    async def _capture(self) -> None:
        """What the machines really have now that the servers run; and what these say they ignored.

        Of further members under `members.ROLE`, so that equal settings of two servers are told apart.
        """
        facts, members = self._record.facts, {s.part.role for s in self._each if s.part.place}
        values: dict[str, str] = {}
        for role in self._reach.roles:
            prefix = f"{MEMBERS}{role}.{HOST}" if role in members else role
            values |= {f"{prefix}.{path}": value for path, value in facts[role].profile.items()}
        for serving in self._each:
            prefix = f"{MEMBERS}{serving.part.role}." if serving.part.place else ""
            directory = self._reach.directory(serving.part.role)
            own = await serving.captured()
            values |= {f"{prefix}{path}": value.replace(directory, "$RUN") for path, value in own.items()}
        values["load_tool.version"] = facts["driver"].tool_version
        await self._emit(ConfigurationCaptured({path: masked(path, value) for path, value in values.items()}))
        for serving in self._each:
            await serving.tell_problems()
