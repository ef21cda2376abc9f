"""Which labs there are on this machine: each has a number, and with it names and addresses that no other lab uses."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.processes import ProcessId
from lab.shell import LabError, run

CLAIMS = Path("/run/benchhub-lab")
NUMBERS = range(1, 255)

ADDRESS_PREFIX = "10.203."
"""Every address of every lab begins with it."""


@dataclass(frozen=True)
class Claim:
    """A lab's number and directory; with an `owner` it is over when that process is, however that ended."""

    number: int
    directory: Path
    owner: ProcessId | None = None

    @property
    def prefix(self) -> str:
        """What the names of its network namespaces begin with."""
        return f"bhlab{self.number}-"

    @property
    def interface(self) -> str:
        """The controller's end of the management network."""
        return f"bhlab{self.number}"

    @property
    def network(self) -> str:
        """The first three bytes of its addresses."""
        return f"{ADDRESS_PREFIX}{self.number}"

    @property
    def abandoned(self) -> bool:
        return not self.directory.is_dir() or (self.owner is not None and not self.owner.alive)


def take(directory: Path, owner: ProcessId | None, clear: Callable[[Claim], None]) -> Claim:
    """The claim of the lab in `directory`, a new one where it has none. `clear` removes what abandoned labs left."""
    with _locked():
        claims = _read_all()
        for claim in claims.values():
            if claim.directory == directory:
                return claim
        for claim in [claim for claim in claims.values() if claim.abandoned]:
            clear(claim)
            _file(claim.number).unlink(missing_ok=True)
            del claims[claim.number]
        routes = run(("ip", "-4", "route", "show", "table", "all"))
        for number in NUMBERS:
            claim = Claim(number, directory, owner)
            if number not in claims and f" {claim.network}." not in f" {routes}".replace("\n", " "):
                data = asdict(claim) | {"directory": str(directory)}
                _file(number).write_text(json.dumps(data))
                return claim
    raise LabError(f"No number between {NUMBERS[0]} and {NUMBERS[-1]} is free for another lab.")


def find(directory: Path) -> Claim | None:
    """The claim of the lab in `directory`, None when it has none: then nothing of it runs."""
    return next((claim for claim in _read_all().values() if claim.directory == directory), None)


def release(claim: Claim) -> None:
    with _locked():
        _file(claim.number).unlink(missing_ok=True)


def _file(number: int) -> Path:
    return CLAIMS / str(number)


def _read_all() -> dict[int, Claim]:
    claims = {}
    for file in CLAIMS.glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            data = json.loads(file.read_text())
            owner = ProcessId(**data["owner"]) if data["owner"] else None
            claims[data["number"]] = Claim(data["number"], Path(data["directory"]), owner)
    return claims


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    CLAIMS.mkdir(mode=0o755, exist_ok=True)
    with (CLAIMS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
