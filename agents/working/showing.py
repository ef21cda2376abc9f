"""Events as people may read them: without secrets in their texts, before anything of them is stored or sent."""

from __future__ import annotations

from dataclasses import replace

from agents.base.redaction import Redactor, without_secrets
from agents.events import AnyEvent, Failed, LoadReported, Logged


class Showing:
    """Reads the events of one run in their order: the lines of one source are one text, as a key has many lines."""

    def __init__(self) -> None:
        self._redactors: dict[str, Redactor] = {}

    def fit(self, event: AnyEvent) -> AnyEvent:
        """The event without secrets in what people read of it."""
        match event:
            case Logged():
                redactor = self._redactors.setdefault(event.source, Redactor())
                text = redactor.feed("".join(f"{line}\n" for line in event.lines))
                return replace(event, lines=tuple(text.split("\n")[:-1]))
            case LoadReported():
                return replace(event, output=without_secrets(event.output))
            case Failed():
                return replace(event, message=without_secrets(event.message), hint=without_secrets(event.hint))
            case _:
                return event
