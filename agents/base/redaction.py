"""Hides what looks like a secret before it is recorded: in settings, command lines, outputs and files of tools.

Known are names (`keystorePassword=...`) and shapes (private keys, our tokens, credentials of headers and of URLs). A
secret that stands alone, without either, is not recognised.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agents.base.setting_outcome import SettingOutcome

HIDDEN = "(hidden)"
MOST_HELD_CHARS = 64 << 10
"""Letters that a line without an end may have before a part of it is handed on."""
_LONGEST_BEGINNING_CHARS = 512
"""More letters than what comes before a secret and tells that it is one (`_SECRET`)."""

_WORDS = (
    r"(?:pass(?:word|wd|phrase)|key(?:store)?pass|secret|credential|api[_\-]?key|private_?key|fastopen_key"
    r"|(?:auth|access|refresh|id|session|csrf)[_\-]?token)"
)
_NAME = re.compile(_WORDS, re.IGNORECASE)
_KEY = re.compile("-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")
_KEY_END = re.compile("-----END [A-Z ]{0,30}PRIVATE KEY-----")
# Cheaper to look for than the pattern below, and there in all that it finds.
_HINTS = (
    *("passw", "passphrase", "keypass", "storepass", "secret", "credential", "apikey", "api_key", "api-key"),
    *(f"{kind}{gap}token" for kind in ("auth", "access", "refresh", "id", "session", "csrf") for gap in ("", "_", "-")),
    *("privatekey", "private_key", "private key", "fastopen_key", "bh_", "/s/", "bearer ", "basic ", "authorization"),
    "cookie",
)
_NAMED = rf"(?=[pksacfri]){_WORDS}[\w.\-]{{0,64}}"
_IS = r"[ \t]{0,3}[=:][ \t]{0,3}"
_BARE = r"(?:[^\s,;\"'<]|<(?!/))+"
# In each the group is the secret. Whatever comes before it is bounded, and no secret but a key goes on behind its line:
# an output may be one line of a gigabyte. What a tool wrote stays what it was, CSV, JSON or XML: no secret takes the
# next column, a closing tag, or a figure or an object behind a name in quotes.
_SECRET = re.compile(
    "|".join(
        (
            r"\A([A-Za-z0-9+/=\s]*-----END [A-Z ]{0,30}PRIVATE KEY-----)",  # where the end of a log begins inside a key
            rf"(?-i:{_KEY.pattern})((?s:.*?)(?:(?-i:{_KEY_END.pattern})|\Z))",
            r"\bbh_[a-z0-9]{1,64}_([a-z0-9_\-]+)",
            r"/s/([a-z0-9_\-]{32})(?![a-z0-9_\-])",  # a share link
            r"(?:authorization|cookie)\\?[\"']?:[ \t]{0,3}\\?[\"']?((?:[^\r\n\"'<,]|,[ \t])+)",
            r"\b(?:bearer|basic) ([a-z0-9+/=._~\-]{8,})",
            r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s/:@\"']{0,64}:([^\s/@\"']{1,256})(?=@)",
            rf"{_NAMED}(?:\\?[\"'])?{_IS}\\?\"([^\"\r\n]+?)(?=\\?\"|[\r\n]|\Z)",
            rf"{_NAMED}(?:\\?[\"'])?{_IS}\\?'([^'\r\n]+?)(?=\\?'|[\r\n]|\Z)",
            rf"{_NAMED}\\?[\"']{_IS}(?!not there\b|[\[{{]|-?\d|true\b|false\b|null\b)({_BARE})",
            rf"(?=[pksacfri]){_WORDS}\\?[\"']{_IS}(-?\d[\d.]*)",  # a password of digits, but not password_checks
            rf"{_NAMED}{_IS}(?!not there\b)({_BARE})",  # "not there" is how a setting that is absent is told
            rf"<[\w:.\-]{{0,64}}?{_WORDS}[\w.\-]{{0,64}}(?:[ \t][^<>\r\n]{{0,200}})?>([^<\r\n]+)",
            rf"(?<![\w\-])--[\w\-]{{0,40}}{_WORDS}[\w\-]{{0,40}} {{1,3}}({_BARE})",
        )
    ),
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """The text with everything hidden that looks like a secret."""
    if not _may_hold_one(text):
        return text
    if "PRIVATE KEY" in text:  # over several lines
        return _SECRET.sub(_hidden, text)
    lines = text.splitlines(keepends=True)
    return "".join(_SECRET.sub(_hidden, line) if _may_hold_one(line) else line for line in lines)


def masked(path: str, value: str) -> str:
    """The value as it may be shown: hidden whole when its name (behind the last `@` or `.`) is one of a secret.

    Elsewhere only what follows such a name is hidden: `-Djavax.net.ssl.keyStorePassword=changeit`.
    """
    name = re.split(r"[@.]", path)[-1]
    return HIDDEN if _NAME.search(name) else without_secrets(value)


def masked_outcome(outcome: SettingOutcome) -> SettingOutcome:
    """The outcome of a setting without a secret's value; what became of it stays."""
    wanted, before, effective = (
        None if value is None else masked(outcome.setting, value)
        for value in (outcome.wanted, outcome.before, outcome.effective)
    )
    return replace(outcome, wanted=wanted, before=before, effective=effective)


class Redactor:
    """Hides secrets in a text that comes in pieces, also those that lie across the border of two.

    Handed on are whole lines, and of a line longer than `most_held_chars` as much as surely holds no part of one.
    """

    def __init__(self, most_held_chars: int = MOST_HELD_CHARS) -> None:
        self._most_held_chars = most_held_chars
        self._held = ""
        self._in_key = False

    def feed(self, piece: str) -> str:
        """What may be handed on now that this piece is there, too."""
        self._held += piece
        end = self._held.rfind("\n") + 1
        if not end and len(self._held) > self._most_held_chars:
            end = self._safe_end()
        return self._taken(end)

    def close(self) -> str:
        """The rest, when nothing comes any more."""
        return self._taken(len(self._held))

    def _safe_end(self) -> int:
        """Up to where a long line may be handed on; of a secret that goes on, only its end is held further."""
        end = len(self._held) - _LONGEST_BEGINNING_CHARS
        if self._in_key or not _may_hold_one(self._held):
            return end
        for found in _SECRET.finditer(self._held):
            if found.start() >= end:
                break
            if found.end() < end or _KEY.match(self._held, found.start()):
                continue  # of a key, it is known where it began
            start, begun = found.start(), _beginning(found)
            if found.end() == len(self._held):
                rest = self._held[start + len(begun) :]
                self._held = self._held[:start] + begun + rest[-_LONGEST_BEGINNING_CHARS:]
            return start
        return end

    def _taken(self, end: int) -> str:
        text, self._held = self._held[:end], self._held[end:]
        if self._in_key:
            if (over := _KEY_END.search(text)) is None:
                return ""
            text, self._in_key = text[over.end() :], False
        begins = [found.end() for found in _KEY.finditer(text)] if "PRIVATE KEY" in text else []
        self._in_key = bool(begins) and _KEY_END.search(text, begins[-1]) is None
        return without_secrets(text)


def _may_hold_one(text: str) -> bool:
    small = text.lower()
    return any(hint in small for hint in _HINTS) or ("@" in small and "://" in small)


def _beginning(found: re.Match[str]) -> str:
    return found.string[found.start() : found.start(found.lastindex or 0)]


def _hidden(found: re.Match[str]) -> str:
    return _beginning(found) + HIDDEN
