"""Applies the host steps of a recipe under the undo journal, and takes them back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from agents.command import Command
from agents.errors import AgentError, ConnectError, FenceError, PlanError
from agents.events import AnyEvent, Logged, StepApplied, StepIntended, StepReverted
from agents.journal import undo_text, write_command
from agents.record import Record
from agents.redaction import masked_outcome
from agents.servers.base import Server
from agents.session import Session
from agents.steps.base import HostStep, SettingOutcome, State, StepContext

Emit = Callable[[AnyEvent], Awaitable[None]]

INSTANCE = 0
"""Index of the journal entry for the private instance directory; the recipe's steps count from 1."""


class Tuning:
    """The changes of one run on its SUT. Every method may be called again after a crash at any line."""

    def __init__(self, sut: Session, directory: str, record: Record, emit: Emit) -> None:
        self._sut = sut
        self._directory = directory
        self._record = record
        self._emit = emit
        self.context = StepContext(instance=f"{directory}/instance")

    async def create_instance(self, server: Server) -> None:
        """Make the private instance directory; its removal is the first entry of the journal."""
        instance = self.context.instance
        await self._intend(
            StepIntended(INSTANCE, "Private instance directory", {}, undo_text([_remove_directory(instance)]))
        )
        if INSTANCE in self._record.applied:
            return
        await self._change(_remove_directory(instance), "Clearing the instance directory")
        await self._change(server.create_instance(instance), f"Creating a private {server.kind} instance")
        await self._emit(StepApplied(INSTANCE, (), {}))

    async def apply(self, index: int, step: HostStep) -> None:
        """Journal, apply and read back one step. PlanError when a setting is unsupported and the recipe says fail."""
        if (applied := self._record.applied.get(index)) is not None:
            self._insist(step, applied.outcomes)
            return
        intended = self._record.intended.get(index)
        before: State = intended.before if intended else await self._state(step)
        commands = step.apply(self.context, before)
        await self._intend(StepIntended(index, step.title(), before, undo_text(step.revert(self.context, before))))
        for command in commands:
            await self._change(command, step.title())
        effective = await self._state(step)
        outcomes = step.outcomes(before, effective)
        shown = tuple(map(masked_outcome, outcomes))
        await self._emit(StepApplied(index, shown, effective))
        lines = tuple(f"  {o.setting}: {o.before} -> {o.effective} ({o.result})" for o in shown)
        await self._emit(Logged("runner", (step.title(), *lines)))
        self._insist(step, outcomes)

    async def revert(self, steps: Mapping[int, HostStep]) -> tuple[str, ...]:
        """Take back every step that may have been applied, the last one first; what could not be, in plain words.

        ConnectError when the host stays away: then none of the others can be taken back either.
        """
        problems: list[str] = []
        for index in sorted(self._record.intended, reverse=True):
            if index in self._record.reverted:
                continue
            try:
                problems += await self._revert_one(index, steps.get(index))
            except (ConnectError, FenceError):
                raise
            except AgentError as error:
                problems.append(f"{self._record.intended[index].title}: {error.message}")
        return tuple(problems)

    async def _revert_one(self, index: int, step: HostStep | None) -> list[str]:
        if index == INSTANCE:
            await self._change(_remove_directory(self.context.instance), "Removing the instance directory")
            await self._emit(StepReverted(index))
            return []
        if step is None:
            return [f"{self._record.intended[index].title}: the step is not in the recipe any more"]
        before = self._record.intended[index].before
        now = await self._state(step)
        if conflicts := self._conflicts(index, step, before, now):
            return conflicts
        if now != before or not before:  # a step that shows no state is always undone
            for command in step.revert(self.context, before):
                await self._change(command, f"Undoing: {step.title()}")
            now = await self._state(step)
        left = [key for key in before if now.get(key) != before[key]]
        if left:
            return [f"{step.title()}: {key} could not be put back" for key in left]
        await self._emit(StepReverted(index))
        return []

    def _conflicts(self, index: int, step: HostStep, before: State, now: State) -> list[str]:
        """A setting that is neither as found, nor as asked, nor as read back was changed by someone else: leave it."""
        applied = self._record.applied.get(index)
        if applied is None:
            return []  # died while applying: any mixture of both states is ours
        wanted = step.wanted(before)
        return [
            f"{step.title()}: someone else changed {key} during the run; it was left as it is"
            for key in before
            if now.get(key) not in (before[key], applied.effective.get(key), wanted.get(key))
        ]

    async def _state(self, step: HostStep) -> State:
        result = await self._sut.run(step.probe(self.context), max_output_bytes=4 << 20)
        return step.parse(result.check(f"Reading {step.title()}").stdout)

    async def _intend(self, entry: StepIntended) -> None:
        if entry.index not in self._record.intended:
            await self._emit(entry)  # PostgreSQL first, then the host, then the change
        command = write_command(f"{self._directory}/journal", self._record.intended, entry.index)
        await self._change(command, "Writing the undo journal")

    async def _change(self, command: Command, what: str) -> None:
        (await self._sut.mutate(command)).check(what)

    def _insist(self, step: HostStep, outcomes: tuple[SettingOutcome, ...]) -> None:
        """PlanError when the host does not have, or did not take, what the step asks for."""
        missing = [o.setting for o in outcomes if o.result == "unsupported"]
        if missing and step.unsupported == "fail":
            raise PlanError(
                f"{self._sut.host} does not have {', '.join(missing)}.",
                hint="Remove the setting from the recipe, or let the step skip what is unsupported.",
            )
        refused = [o for o in outcomes if o.result == "refused"]
        if refused:
            first = refused[0]
            raise PlanError(
                f"{self._sut.host} did not take {first.setting} = {first.wanted}: it shows {first.effective}.",
                hint="The value may be out of range, read-only here, or need root.",
            )


def _remove_directory(path: str) -> Command:
    return Command(("rm", "-rf", "--", path))
