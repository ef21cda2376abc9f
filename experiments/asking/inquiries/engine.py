"""The engine of inquiries: each step is an ordinary run or experiment, and its end launches the next one.

Nothing about an inquiry lives in a process: every step is made of the stored results of the steps before it, in the
transaction that ends one. A worker that dies leaves a run to be resumed, and with it the inquiry.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, cast

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Model

from agents.base.errors import MISTAKE_HINT
from experiments.models import Experiment, Host, Member, Role, Run, Team
from experiments.models.inquiries import Inquiry
from experiments.registry.database_clock import database_now
from experiments.registry.errors import DATABASE_AWAY, Conflict, NotFound, RequestError
from experiments.registry.naming import check_title
from experiments.registry.teams import audit
from experiments.registry.teams.access import acting_member, require, require_launch_on
from experiments.registry.teams.quotas import QuotaExceeded
from experiments.running.queue.priorities import check_priority

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 20
"""So many inquiries of a kind that wait for a quota are tried at once."""

State = Inquiry.State
Question = TypeVar("Question", bound=Inquiry)
Step = TypeVar("Step")
Launched = TypeVar("Launched", Run, Experiment)
Following = TypeVar("Following")


@dataclass(frozen=True)
class End:
    """There is nothing further to launch: the answer, or why there is none, in a sentence."""

    state: Inquiry.State
    sentence: str


@dataclass(frozen=True)
class Later:
    """What follows has to be worked out first, which no transaction waits for: `Inquiries.work_out_later`."""


class Inquiries(ABC, Generic[Question, Step, Launched, Following]):
    """All inquiries of one kind, which knows its rows and its question: what came of a step, and what follows.

    `Question` is the row of an inquiry, `Step` that of one step, `Launched` what a step launches, `Following` what is
    decided about the next step.
    """

    model: type[Question]
    word: ClassVar[str]
    """In the audit trail, and the label of what it launches."""
    title: ClassVar[str]
    """In a sentence to people."""
    step_word: ClassVar[str]

    @abstractmethod
    def told(self, inquiry: Question) -> dict[str, object]:
        """What the audit trail keeps of its start."""

    @abstractmethod
    def decide(self, inquiry: Question) -> Following | End | Later:
        """What follows after the steps that are over. May set what is known by now on the row, which is saved then."""

    @abstractmethod
    def launch(self, member: Member, inquiry: Question, following: Following) -> None:
        """Launch this step and store it."""

    @abstractmethod
    def open_step(self, launched: Launched) -> Step | None:
        """The step that this was; None when it was none, or one that is judged already."""

    @abstractmethod
    def inquiry_id(self, step: Step) -> int:
        """Of which inquiry it is a step."""

    @abstractmethod
    def step_name(self, step: Step, launched: Launched) -> str:
        """As people are told of it: "run #7", "step 2"."""

    @abstractmethod
    def judge(self, inquiry: Question, step: Step, launched: Launched) -> End | None:
        """Store what came of the step; an end when no further one could help."""

    @abstractmethod
    def why_cancelled(self, step: Step, launched: Launched) -> str:
        """A sentence when somebody cancelled what the step had launched, else nothing."""

    @abstractmethod
    def hold_open_step(self, inquiry: Question) -> Step | None:
        """The step under way, with what it launched locked: whoever ends that locks it before the inquiry, too."""

    @abstractmethod
    def cancel_step(self, member: Member, step: Step) -> None:
        """Cancel what the step launched, unless that is over."""

    def may_go_on(self, inquiry: Question) -> bool:
        """Whether the next step may be launched now. Whoever changes that goes on itself."""
        return True

    def work_out_later(self, inquiry: Question) -> None:
        """Work out what follows after this transaction. For kinds whose `decide` says Later."""
        raise NotImplementedError

    def check(self, member: Member, *, name: str, hosts: Iterable[Host], priority: int) -> None:
        """What every inquiry needs to be started. RequestError names the field that does not fit."""
        require_launch_on(member, *hosts)
        check_priority(member, priority)
        if not name.strip():
            raise RequestError(f"Give the {self.title} a name.", field="name")
        check_title(name.strip(), f"A {self.title}")

    def start(self, member: Member, inquiry: Question, parts: Iterable[Model] = ()) -> None:
        """Store a checked inquiry with further rows and launch its first step: all or, with a RequestError, nothing."""
        inquiry.created_by_id = member.user_id
        with transaction.atomic():
            inquiry.save()
            for part in parts:
                part.save()
            audit.record(member, f"{self.word}.start", f"{self.word} {inquiry.name}", after=self.told(inquiry))
            following = self.decide(inquiry)
            if isinstance(following, End):
                raise RequestError(following.sentence)
            if isinstance(following, Later):
                raise RequestError(f"The first {self.step_word} cannot be launched as it is.")
            self.launch(member, inquiry, following)

    def step_ended(self, launched: Launched) -> None:
        """Judge the step that this was, and go on. Call in the transaction that ends it.

        What was launched ends even if the inquiry cannot go on; then that stops. Safe to repeat: a step is judged once,
        and the one that follows has a position of its own.
        """
        step = self.open_step(launched)
        if step is None:
            return
        inquiry = self.locked(self.inquiry_id(step))
        try:
            with transaction.atomic():
                self._judge(inquiry, step, launched)
        except DATABASE_AWAY:
            raise
        except Exception:
            name = self.step_name(step, launched)
            logger.exception("%s %s cannot go on after %s", self.word, inquiry.pk, name)
            inquiry.refresh_from_db()  # without what was about to be stored
            self.stop_for_mistake(inquiry, f"after {name}")

    def cannot_run(self, launched: Launched, why: str) -> None:
        """End the inquiry of this step, whose runs can never start, and what is left of the step.

        Call in the transaction that found it out.
        """
        step = self.open_step(launched)
        if step is None:
            return
        inquiry = self.locked(self.inquiry_id(step))
        if inquiry.state != State.RUNNING:
            return
        _end(inquiry, End(State.STOPPED, why))
        member = acting_member(inquiry.team_id, inquiry.created_by_id)
        if member is not None:
            with suppress(RequestError), transaction.atomic():  # who may not cancel it any more lets its runs fail
                self.cancel_step(member, step)

    def cancel(self, member: Member, inquiry: Question) -> None:
        """End the inquiry, and what it has launched. Conflict when it is over already."""
        require(member, Role.LAUNCHER)
        with transaction.atomic():
            step, before = self.hold_open_step(inquiry), None
            while step != before:  # until it was held, it may have ended and another one have followed
                step, before = self.hold_open_step(inquiry), step
            locked = self.locked(inquiry.pk)
            if locked.state != State.RUNNING:
                raise Conflict(f"This {self.title} is over already.")
            _end(locked, End(State.CANCELLED, f"Cancelled by {member.user.get_username()}."))
            if step is not None:
                self.cancel_step(member, step)
            audit.record(member, f"{self.word}.cancel", f"{self.word} {locked.name}")
        inquiry.refresh_from_db()

    def find(self, team: Team, inquiry_id: int) -> Question:
        """The team's inquiry of this number, with the names that pages show."""
        found = self.model.objects.for_team(team).with_names().filter(pk=inquiry_id).first()
        if found is None:
            raise NotFound(f"There is no {self.word} {inquiry_id}.")
        return cast(Question, found)

    def newest(
        self, team: Team, *, state: str = "", before: int | None = None, limit: int
    ) -> tuple[list[Question], int | None]:
        """A page of the team's inquiries (of this state), newest first; and where the next page begins."""
        found = self.model.objects.for_team(team).with_names()
        return (found.filter(state=state) if state else found).newest_page(before, limit)

    def labels_of(self, inquiry: Question) -> dict[str, str]:
        """The labels of what the inquiry launches; one of them leads back to it."""
        return {**inquiry.labels, self.word: str(inquiry.pk)}

    def _judge(self, inquiry: Question, step: Step, launched: Launched) -> None:
        end = self.judge(inquiry, step, launched)
        if inquiry.state != State.RUNNING:
            return
        if cancelled := self.why_cancelled(step, launched):
            end = End(State.CANCELLED, cancelled)
        if end is not None:
            _end(inquiry, end)
        elif self.may_go_on(inquiry):
            self.go_on(inquiry)

    def go_on(self, inquiry: Question) -> None:
        """Launch the step that follows, or end. The row must be locked, and no step under way."""
        self.follow(inquiry, self.decide(inquiry))

    def follow(self, inquiry: Question, following: Following | End | Later) -> None:
        """Do what was decided. The row must be locked, and no step under way.

        A quota that is used up stops nothing: the inquiry says so in its sentence, and `try_again` goes on with it.
        """
        if isinstance(following, End):
            _end(inquiry, following)
            return
        inquiry.sentence = ""
        inquiry.save()
        if isinstance(following, Later):
            self.work_out_later(inquiry)
            return
        if not self.may_go_on(inquiry):  # it is paused by what was decided
            return
        member = acting_member(inquiry.team_id, inquiry.created_by_id)
        if member is None:
            _end(inquiry, End(State.STOPPED, _why_nobody(inquiry)))
            return
        try:
            with transaction.atomic():
                self.launch(member, inquiry, following)
        except QuotaExceeded as error:
            inquiry.sentence = f"The next {self.step_word} waits, and is tried again by itself: {error.message}"
            inquiry.save(update_fields=["sentence"])
        except RequestError as error:
            _end(inquiry, End(State.STOPPED, f"The next {self.step_word} could not be launched: {error.message}"))

    def try_again(self) -> None:
        """Launch what follows in inquiries that wait for a quota of their team. Safe to repeat, by several at once."""
        waiting = self.model.objects.filter(state=State.RUNNING).exclude(sentence="").order_by("?")
        for inquiry_id in waiting.values_list("pk", flat=True)[:MOST_AT_ONCE]:
            with self.held_or_stopped(inquiry_id, "after it waited for a quota") as locked:
                # With a sentence it has no step under way: whoever launches one takes the sentence away.
                if locked.state == State.RUNNING and locked.sentence and self.may_go_on(locked):
                    self.go_on(locked)

    @contextmanager
    def held_or_stopped(self, inquiry_id: int, where: str) -> Iterator[Question]:
        """A transaction with its row locked; a mistake of ours in it stops the inquiry and keeps no other waiting."""
        try:
            with transaction.atomic():
                yield self.locked(inquiry_id)
        except DATABASE_AWAY:
            raise
        except Exception:
            logger.exception("%s %s cannot go on", self.word, inquiry_id)
            with transaction.atomic():
                self.stop_for_mistake(self.locked(inquiry_id), where)

    def stop_for_mistake(self, inquiry: Question, where: str) -> None:
        """End an inquiry that is still running and cannot go on for a mistake of ours."""
        if inquiry.state == State.RUNNING:
            _end(inquiry, End(State.STOPPED, f"BenchHub failed to go on {where}. {MISTAKE_HINT}"))

    def locked(self, inquiry_id: int) -> Question:
        """Its row, locked until the end of the transaction."""
        return cast(Question, self.model.objects.select_for_update(of=("self",)).get(pk=inquiry_id))


def _why_nobody(inquiry: Inquiry) -> str:
    if get_user_model().objects.filter(pk=inquiry.created_by_id or 0, is_active=False).exists():
        return "The account of whoever started it is closed."
    return "Whoever started it is no longer a member of the team."


def _end(inquiry: Inquiry, end: End) -> None:
    inquiry.state, inquiry.sentence, inquiry.finished_at = end.state, end.sentence, database_now()
    inquiry.save()
