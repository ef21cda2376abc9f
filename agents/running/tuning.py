"""Applies the host steps of a recipe under the undo journal, and takes them back."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from agents.base.command import Command, failure
from agents.base.errors import AgentError, CommandError, ConnectError, FenceError, PlanError, ProgramError
from agents.base.redaction import masked, masked_outcome, without_secrets
from agents.base.session import Session
from agents.base.setting_outcome import SettingOutcome
from agents.events import AnyEvent, JobEnded, JobIntended, Logged, Role, StepApplied, StepIntended, StepReverted
from agents.record import Record
from agents.remote.jobs import Job, JobStatus
from agents.remote.journal import undo_text, write_command
from agents.servers.base.server import Server
from agents.spec import Part, RunSpec
from agents.steps import is_host_step
from agents.steps.base.step import HostStep, State, StepContext
from agents.system import LOADED

Emit = Callable[[AnyEvent], Awaitable[None]]

INSTANCE = 0
"""Index of the journal entry for the private instance directories; the recipe's steps count from 1."""
EACH = 1000
"""A step inside the instance is repeated in every instance: in the one with number n at its index + n times this."""
MEMBER = 100_000
"""The entries of a further member of a system count from its place times this."""

MAX_STEP_OUTPUT_BYTES = 1 << 16
LAST_LINES = 200
LINES_OF_FAILURE = 3
FIRST_LOOK_S = 0.05
SELDOM_S = 1.0


class Tuning:
    """The changes of one run on the host of a server. Every method may be called again after a crash at any line.

    `check` raises when the run is to end; it is asked while a long step runs. `attempt` tells a later try at the way
    back from the first one, so that what may only run once per try runs again. `force` also puts back what somebody
    else has changed since. `role` and `place` are those of a member of a system, `journal` the places whose entries
    stand in one journal with its own.
    """

    def __init__(
        self,
        sut: Session,
        directory: str,
        record: Record,
        emit: Emit,
        *,
        check: Callable[[], None] = lambda: None,
        attempt: str = "",
        force: bool = False,
        instances: int = 1,
        role: Role = LOADED,
        place: int = 0,
        journal: Collection[int] | None = None,
    ) -> None:
        self._role = role
        self._place = place
        self._journal = {place} if journal is None else set(journal)
        self._sut = sut
        self._directory = directory
        self._record = record
        self._emit = emit
        self._check = check
        self._attempt = attempt
        self._force = force
        self._instances = [instance_directory(directory, number, role) for number in range(instances)]

    async def create_instances(self, server: Server, address: str) -> None:
        """Make the private instance directories of a server that is to listen on `address` ("": everywhere).

        Their removal is the first entry of the journal.
        """
        remove, index = Command(("rm", "-rf", "--", *self._instances)), self._place * MEMBER + INSTANCE
        await self._intend(StepIntended(index, self._of("Private instance directory"), {}, undo_text([remove])))
        if index in self._record.applied:
            return
        await self._change(remove, "Clearing the instance directory")
        for number, directory in enumerate(self._instances):
            made = server.instance(number, address).create_instance(directory)
            await self._change(made, f"Creating a private {server.kind} instance")
        await self._emit(StepApplied(index, (), {}))

    def _context(self, index: int) -> StepContext:
        return StepContext(instance=self._instances[index % MEMBER // EACH])

    def _of(self, title: str) -> str:
        """The title with the member that it is meant for."""
        return f"{self._role}: {title}" if self._place else title

    async def apply(self, index: int, step: HostStep) -> None:
        """Journal, apply and read back one step. PlanError when a setting is unsupported and the recipe says fail."""
        if (applied := self._record.applied.get(index)) is not None:
            self._insist(step, applied.outcomes)
            return
        intended = self._record.intended.get(index)
        context = self._context(index)
        before: State = intended.before if intended else await self._state(step, context)
        commands = step.apply(context, before)
        await self._intend(StepIntended(index, self._of(step.title()), before, undo_text(step.revert(context, before))))
        for number, command in enumerate(commands):
            if step.once:
                await self._change_once(f"step-{index}-{number}", command, step.title(), check=self._check)
            else:
                await self._change(command, step.title())
        effective = await self._state(step, context)
        outcomes = step.outcomes(before, effective)
        shown = tuple(map(masked_outcome, outcomes))
        await self._emit(StepApplied(index, shown, effective))
        lines = tuple(
            f"  {o.setting}: {_or_not_there(o.before)} -> {_or_not_there(o.effective)} "
            f"({o.result}{', ' if o.detail else ''}{o.detail})"
            for o in shown
        )
        await self._emit(Logged("runner", (self._of(step.title()), *lines)))
        self._insist(step, outcomes)

    async def revert(self, steps: Mapping[int, HostStep]) -> tuple[str, ...]:
        """Take back every step that may have been applied, the last one first; what could not be, in plain words.

        ConnectError when the host stays away: then none of the others can be taken back either.
        """
        problems: list[str] = []
        mine = (index for index in self._record.intended if index // MEMBER == self._place)
        todo = [index for index in sorted(mine, reverse=True) if index not in self._record.reverted]
        kept = bool(todo) and (await self._sut.run(Command(("test", "-d", self._instances[0])))).ok
        for index in todo:
            step = steps.get(index)
            if not kept and step is not None and step.in_instance:
                await self._emit(StepReverted(index))  # gone with the instance, which restore.sh has removed
                continue
            try:
                problems += await self._revert_one(index, step)
            except (ConnectError, FenceError):
                raise
            except AgentError as error:
                title = self._record.intended[index].title
                problems.append(error.message if title in error.message else f"{title}: {error.message}")
        return tuple(problems)

    async def _revert_one(self, index: int, step: HostStep | None) -> list[str]:
        if index % MEMBER == INSTANCE:
            await self._change(Command(("rm", "-rf", "--", *self._instances)), "Removing the instance directory")
            await self._emit(StepReverted(index))
            return []
        if step is None:
            return [f"{self._record.intended[index].title}: the step is not in the recipe any more"]
        context, before = self._context(index), self._record.intended[index].before
        await self._let_undos_end(index, step, before)
        now = await self._state(step, context)
        foreign = self._foreign(index, step, before, now)
        conflicts = self._conflicts(index, step, before, now, foreign)
        if foreign and not step.independent:
            return conflicts
        before = {**before, **{key: now.get(key) for key in foreign}}
        if now != before or not before:  # a step that shows no state is always undone
            for number, command in enumerate(step.revert(context, before)):
                if step.once:
                    name = f"undo-{index}-{number}{self._attempt}"
                    await self._change_once(name, command, f"Undoing: {step.title()}", check=lambda: None)
                else:
                    await self._change(command, f"Undoing: {step.title()}")
            now = await self._state(step, context)
        left = [f"{step.title()}: {key} could not be put back" for key in step.differing(before, now)]
        if conflicts or left:
            return conflicts + left
        await self._emit(StepReverted(index))
        return []

    async def _let_undos_end(self, index: int, step: HostStep, before: State) -> None:
        """Wait for an undo that an earlier worker began: no second one may run beside it, and only its end tells what
        is left to do."""
        undo = step.revert(self._context(index), before)
        longest = max(undo, key=lambda command: command.timeout_s, default=Command(("true",), timeout_s=0.0))
        for name, intended in list(self._record.jobs.items()):
            if name.startswith(f"undo-{index}-") and name not in self._record.ended_jobs:
                job = Job(self._sut, intended.directory, privileged=intended.privileged)
                await _until_ended(job, intended.cookie, longest, f"Undoing: {step.title()}", lambda: None)

    def _foreign(self, index: int, step: HostStep, before: State, now: State) -> list[str]:
        """A setting that is neither as found, nor as asked, nor as read back was changed by someone else: leave it."""
        applied = self._record.applied.get(index)
        if applied is None or self._force:
            return []  # died while applying: any mixture of both states is ours
        wanted = step.wanted(before)
        return [
            key
            for key in step.differing(before, now)
            if now.get(key) not in (applied.effective.get(key), wanted.get(key))
        ]

    def _conflicts(self, index: int, step: HostStep, before: State, now: State, foreign: list[str]) -> list[str]:
        what, applied = "it" if step.independent else "this step", self._record.applied
        return [
            f"{step.title()}: someone else changed {key} during the run, so {what} was left as it is. It was "
            f"{_shown(key, before[key])}, the run made it {_shown(key, applied[index].effective.get(key))}, "
            f"now it is {_shown(key, now.get(key))}"
            for key in foreign
        ]

    async def _state(self, step: HostStep, context: StepContext) -> State:
        probe = step.probe(context)
        result = await self._sut.run(probe, max_output_bytes=4 << 20)
        return step.parse(result.check(f"Reading {step.title()}", by_author=probe.by_author).stdout)

    async def _intend(self, entry: StepIntended) -> None:
        if entry.index not in self._record.intended:
            await self._emit(entry)  # PostgreSQL first, then the host, then the change
        entries = {index: one for index, one in self._record.intended.items() if index // MEMBER in self._journal}
        command = write_command(f"{self._directory}/journal", entries, entry.index)
        await self._change(command, "Writing the undo journal")

    async def _change(self, command: Command, what: str) -> None:
        (await self._sut.mutate(command)).check(what, by_author=command.by_author)

    async def _change_once(self, name: str, command: Command, what: str, *, check: Callable[[], None]) -> None:
        """A command that may not be repeated, as a detached job: after a cut, or when another worker comes, it is found
        running or ended. CommandError when it fails, or when nobody knows how it ended."""
        job = Job(self._sut, f"{self._directory}/jobs/{name}", privileged=command.privileged)
        if name not in self._record.jobs:
            await self._emit(JobIntended(name, self._role, job.directory, secrets.token_hex(16), command.privileged))
        cookie = self._record.jobs[name].cookie
        await job.start(command, cookie=cookie, max_output_bytes=MAX_STEP_OUTPUT_BYTES)
        status = await _until_ended(job, cookie, command, what, check)
        if name not in self._record.ended_jobs:
            await self._emit(JobEnded(name, status.exit_status))
        if status.exit_status != 0:
            said = await job.read("err", 0, MAX_STEP_OUTPUT_BYTES) or await job.read("out", 0, MAX_STEP_OUTPUT_BYTES)
            lines = without_secrets(said.decode("utf-8", "replace")).strip().splitlines()
            if len(lines) > LINES_OF_FAILURE:
                await self._emit(Logged("runner", (f"{what} said last:", *lines[-LAST_LINES:])))
            last = " / ".join(lines[-LINES_OF_FAILURE:])
            how = f"exit status {status.exit_status}" if status.exit_status is not None else "an unknown end"
            message = f"{what} failed with {how}{': ' if last else ''}{last}"
            raise failure(message, status.exit_status, by_author=command.by_author)

    def _insist(self, step: HostStep, outcomes: tuple[SettingOutcome, ...]) -> None:
        """PlanError when the host does not have, or did not take, what the step asks for."""
        missing = [
            f"{o.setting} ({o.detail})" if o.detail else o.setting for o in outcomes if o.result == "unsupported"
        ]
        if missing and step.unsupported == "fail":
            raise PlanError(
                f"{self._sut.host} does not have {', '.join(missing)}.",
                hint="Remove the setting from the recipe, or let the step skip what is unsupported.",
            )
        refused = [o for o in outcomes if o.result == "refused"]
        if refused:
            first = refused[0]
            why = f", {first.detail}" if first.detail else ""
            raise PlanError(
                f"{self._sut.host} did not take {first.setting} = {first.wanted}: it shows {first.effective}{why}.",
                hint="The value may be out of range, read-only here, or need root.",
            )


async def _until_ended(job: Job, cookie: str, command: Command, what: str, check: Callable[[], None]) -> JobStatus:
    """The job's status once it does not run any more; CommandError when it had to be ended after its time."""
    limit_s = command.timeout_s
    end_s, pause_s = time.monotonic() + limit_s, FIRST_LOOK_S
    while (status := await job.status()).state == "running":
        check()
        if time.monotonic() > end_s:
            await job.kill(cookie=cookie)
            error = ProgramError if command.by_author else CommandError
            raise error(f"{what}: it did not end within {limit_s:g} s, and was ended.")
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, SELDOM_S)
    return status


def _or_not_there(value: str | None) -> str:
    return "not there" if value is None else value


def _shown(key: str, value: str | None) -> str:
    if value is None:
        return "not there"
    text = " ".join(masked(key, value).split())
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def instance_directory(directory: str, number: int, role: Role = LOADED) -> str:
    """Where the instance with this number, counted from 0, of a server lives in the run's directory."""
    own = f"{directory}/instance" if role == LOADED else f"{directory}/instance-{role}"
    return f"{own}-{number + 1}" if number else own


def host_steps(of: RunSpec | Part) -> dict[int, HostStep]:
    """The host steps for a server by their place among its steps, counted from 1, and again for each further instance.

    Those of a further member of a system begin at its own place.
    """
    part = of.part(LOADED) if isinstance(of, RunSpec) else of
    steps = {i: step for i, step in enumerate(part.steps, start=1) if is_host_step(step)}
    again = range(1, part.server.count)
    steps |= {n * EACH + i: step for n in again for i, step in steps.items() if step.in_instance}
    return {part.place * MEMBER + i: step for i, step in steps.items()}


def shared_journal(spec: RunSpec, record: Record, role: Role) -> frozenset[int]:
    """The places of the servers whose entries stand in one journal with those of this one: they share its directory."""
    here = record.facts[role]
    return frozenset(
        part.place
        for part in spec.parts
        if (there := record.facts.get(part.role)) and (there.directory, there.boot_id) == (here.directory, here.boot_id)
    )


def tuning_of(
    spec: RunSpec,
    part: Part,
    session: Session,
    record: Record,
    emit: Emit,
    *,
    check: Callable[[], None] = lambda: None,
    attempt: str = "",
    force: bool = False,
) -> Tuning:
    """The changes of the run for one of its servers."""
    return Tuning(
        session,
        record.facts[part.role].directory,
        record,
        emit,
        check=check,
        attempt=attempt,
        force=force,
        instances=part.server.count,
        role=part.role,
        place=part.place,
        journal=shared_journal(spec, record, part.role),
    )
