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


OTHER = "Other"
"""The heading of what describes no part of a machine; it stands last."""


@dataclass(frozen=True)
class Section:
    """Facts whose keys begin with `prefix`, as a page about hardware shows them, under `heading`.

    `first` are keys that people look for first, in order; `folded` are beginnings of keys that would hide the others.
    A label is the rest of the key in words, with `prefix` before it where `says_prefix`, unless `label` makes it. A key
    ends in its unit: sizes in `_bytes`.
    """

    prefix: str
    heading: str
    first: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    says_prefix: bool = False
    label: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Fact:
    """A fact: `command` prints nothing where there is nothing, `parse` raises ParseError."""

    name: str
    command: Command
    parse: Callable[[bytes], FactValue]
    sections: tuple[Section, ...]


def known(**values: object) -> dict[str, str]:
    """The values that are known, as text; `__` in a name stands for a point."""
    return {k.replace("__", "."): str(v) for k, v in values.items() if v is not None and v != ""}


def decode(output: bytes) -> str:
    """The start of the output as text; a host never needs more than MAX_FACT_BYTES to say one fact."""
    return output[:MAX_FACT_BYTES].decode("utf-8", "replace")
