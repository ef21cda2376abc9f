"""What a shared sheet must not tell: addresses of hosts, e-mail addresses, secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agents.base.redaction import masked
from experiments.models import Host, Team
from experiments.telling.sharing.sheet import Sheet

ADDRESS, E_MAIL = "(address)", "(e-mail)"
_E_MAIL = re.compile(r"[\w.+\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63})+")
# What XML forbids: one such character in the output of a tool would leave a picture undrawn.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
# Nothing tells a public IPv4 address from a version (17.0.10.1): those of hosts are known, the rest are private ones.
_PRIVATE = re.compile(
    r"(?<!\d)(?<!\d\.)(?:10(?:\.\d{1,3}){3}|127(?:\.\d{1,3}){3}|169\.254(?:\.\d{1,3}){2}|192\.168(?:\.\d{1,3}){2}"
    r"|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2})(?!\.?\d)"
)


def without_private(team: Team, sheet: Sheet) -> Sheet:
    """The sheet with every address of a host of the team, every e-mail address and every secret hidden in its texts."""
    hosts = Host.objects.filter(team=team).values_list("address", "data_address")
    known = _any_of({address for addresses in hosts for address in addresses if address})
    return Sheet.model_validate(_cleaned(sheet.model_dump(mode="json"), known))


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    """Any of the words where it stands alone; the longest first, as one may begin another.

    A name with a dot is found in any case; a single word as it is written, or a host `sut` would hide every SUT.
    """
    ordered = sorted(words, key=len, reverse=True)
    if not ordered:
        return None
    parts = [f"(?i:{re.escape(word)})" if "." in word else re.escape(word) for word in ordered]
    return re.compile(rf"(?<![\w.\-])(?:{'|'.join(parts)})(?![\w\-]|\.\w)")


def _cleaned(value: Any, known: re.Pattern[str] | None) -> Any:
    if isinstance(value, str):
        text = _UNPRINTABLE.sub("", value)
        text = known.sub(ADDRESS, text) if known else text
        return masked("", _E_MAIL.sub(E_MAIL, _PRIVATE.sub(ADDRESS, text)))
    if isinstance(value, list):
        return [_cleaned(item, known) for item in value]
    if isinstance(value, dict):
        return {name: _cleaned(item, known) for name, item in value.items()}
    return value
