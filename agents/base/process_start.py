"""How a server process is started: what launch steps contribute to, and servers and the launcher read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class ProcessStart:
    """`limits` maps the names of prlimit(1) (nofile, memlock in bytes...) to a number; `cpus` "" = all.

    `prefix` are words before the server's own: a program that does something to its process and then becomes what
    follows.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    jvm_options: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    cpus: str = ""
    prefix: tuple[str, ...] = ()

    def with_(self, **changes: object) -> ProcessStart:
        return replace(self, **changes)  # type: ignore[arg-type]
