"""What every fact must offer: the command that reads it on a host, and what is in the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agents.base.command import Command

MAX_FACT_BYTES = 1_000_000


class FactValue(Protocol):
    """What was found. Both mappings are flat `section.path` -> text; what is unknown is absent."""

    def stable(self) -> Mapping[str, str]:
        """What describes the machine and belongs to its profile."""

    def volatile(self) -> Mapping[str, str]:
        """What may differ from one minute or one boot to the next."""


@dataclass(frozen=True)
class Fact:
    """A fact: `command` prints nothing where there is nothing, `parse` raises ParseError."""

    command: Command
    parse: Callable[[bytes], FactValue]


def known(**values: object) -> dict[str, str]:
    """The values that are known, as text; `__` in a name stands for a point."""
    return {k.replace("__", "."): str(v) for k, v in values.items() if v is not None and v != ""}


def decode(output: bytes) -> str:
    """The start of the output as text; a host never needs more than MAX_FACT_BYTES to say one fact."""
    return output[:MAX_FACT_BYTES].decode("utf-8", "replace")
