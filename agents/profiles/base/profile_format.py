"""What a form of profile must offer: a name, how it is told from the others, what reads it, and what writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.profiles.base.profile import Profile

HEAD_BYTES = 65_536


@dataclass(frozen=True)
class ProfileFormat:
    """A form of profile. `looks_like` sees the first 64 KiB, unpacked; `read` the whole, and raises ParseError.

    `write` is there for forms in which profiles are handed on; `suffix` is the end of such a file's name.
    """

    kind: str
    title: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[bytes], Profile]
    suffix: str
    write: Callable[[Profile], bytes] | None = None
