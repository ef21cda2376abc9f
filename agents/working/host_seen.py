"""What is asked of a look at one host, and what it brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.base.errors import PlanError
from agents.facts.access import Access
from agents.remote.address import Address, HostKey
from agents.running.outfit import HostFinding


@dataclass(frozen=True)
class HostAsked:
    """What is looked at: `serves` and `drives` are the parts that it may have, `servers` where it would find others."""

    address: Address
    serves: bool
    drives: bool
    servers: Mapping[str, str]


@dataclass(frozen=True)
class Seen:
    """What a test brought: the keys of a host that is to be approved, or the facts and the clock of a known one.

    `profile` is the stable part of the facts with its `digest`, "" when nobody logged in; `unread` what could not be
    read. `remark`: what it does without. `notes`: what else is to be told. `findings`: what runs may use there.
    """

    offered: tuple[HostKey, ...] = ()
    digest: str = ""
    profile: Mapping[str, str] | None = None
    unread: Mapping[str, str] | None = None
    access: Access | None = None
    clock_ahead_s: float | None = None
    remark: str = ""
    notes: tuple[str, ...] = ()
    findings: tuple[HostFinding, ...] = ()


class Unfit(PlanError):
    """The host lacks what every run needs; `findings` are told with it, so that one look names all that is missing."""

    def __init__(self, message: str, hint: str, findings: tuple[HostFinding, ...]) -> None:
        super().__init__(message, hint=hint)
        self.findings = findings
