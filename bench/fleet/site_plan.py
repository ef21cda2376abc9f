"""What a site consists of, and its file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class SitePlan:
    """Addresses are of the loopback network, all hosts listen on one port."""

    name: str
    addresses: tuple[str, ...]
    ssh_port: int
    host_key_file: str
    database_port: int = 0
    database_socket: str = ""
    broker_port: int = 0
    broker_socket: str = ""
    web_port: int = 0
    web_target: int = 0

    def host_name(self, at: int) -> str:
        return f"{self.name}-{at:03}"


def write_plan(plan: SitePlan, file: Path) -> None:
    file.write_text(json.dumps(asdict(plan)))


def read_plan(file: Path) -> SitePlan:
    given = json.loads(file.read_text())
    return SitePlan(**{**given, "addresses": tuple(given["addresses"])})
