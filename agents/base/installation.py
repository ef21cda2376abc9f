"""Which BenchHub this is: several may use one host, and each must know its own runs there from those of others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Installation:
    """One installation: `id` is unique for ever and goes with its database, `name` (its address) is for people.

    An empty id is an installation of before there were any, or somebody without a database.
    """

    id: str = ""
    name: str = ""

    def __str__(self) -> str:
        """As people are told of it: `BenchHub at https://perf.example`."""
        return f"BenchHub at {self.name}" if self.name else "another BenchHub"


UNNAMED = Installation()
