"""Hides what looks like a secret before it is recorded: configuration files and command lines hold passwords."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the steps are many, and whoever writes a log line needs none of them
    from agents.steps.base import SettingOutcome

HIDDEN = "(hidden)"

_WORDS = (
    r"(?:pass(?:word|wd|phrase)|key(?:store)?pass|secret|credential|api_?key|auth_?token|private_?key|fastopen_key)"
)
_NAME = re.compile(_WORDS, re.IGNORECASE)
_ASSIGNMENT = re.compile(rf"([\w.\-]*{_WORDS}[\w.\-]*[=:])[^\s,;\"']+", re.IGNORECASE)


def masked(path: str, value: str) -> str:
    """The value as it may be shown: hidden whole when its name (behind the last `@` or `.`) is one of a secret.

    Elsewhere only what follows such a name is hidden: `-Djavax.net.ssl.keyStorePassword=changeit`.
    """
    name = re.split(r"[@.]", path)[-1]
    return HIDDEN if _NAME.search(name) else _ASSIGNMENT.sub(rf"\g<1>{HIDDEN}", value)


def masked_outcome(outcome: SettingOutcome) -> SettingOutcome:
    """The outcome of a setting without a secret's value; what became of it stays."""
    wanted, before, effective = (
        None if value is None else masked(outcome.setting, value)
        for value in (outcome.wanted, outcome.before, outcome.effective)
    )
    return replace(outcome, wanted=wanted, before=before, effective=effective)
