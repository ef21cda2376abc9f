"""Writes a whole file, inside the run's instance or anywhere a root-owned configuration file may live."""

from __future__ import annotations

import hashlib
from typing import ClassVar, Literal

from pydantic import ConfigDict, Field

from agents.base.command import Command
from agents.base.rights import Gate, Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.places import is_static
from agents.steps.base.remote_file import MAX_FILE_BYTES, RemoteFileStep, decode_content, encode_content
from agents.steps.base.step import State, StepContext

NEW_FILE_MODE = "0644"


_STATIC_ONLY = Gate("any other file", lambda step: is_static(step.path, step.mode))


class FileStep(RemoteFileStep):
    """Puts `content` into the file at `path`; a file that did not exist before is removed again afterwards."""

    model_config = ConfigDict(str_strip_whitespace=False)

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights(
        "writes static pages into the run's own instance",
        gates=dict.fromkeys(("path", "content", "mode"), _STATIC_ONLY),
    )

    kind: Literal["file"] = "file"
    content: str = Field(max_length=MAX_FILE_BYTES // 4)
    mode: str | None = Field(None, pattern=r"^0?[0-7]{3}$")
    """Octal permissions; None keeps those of the file, 0644 for a new one."""

    def title(self) -> str:
        return f"Write {self.path} ({len(self.content.encode())} bytes)"

    def explains(self, path: str) -> bool:
        return self.wrote(path)

    def wanted(self, before: State) -> State:
        mode = (self.mode or before.get("mode") or NEW_FILE_MODE).zfill(4)
        return {"content": encode_content(self.content.encode()), "mode": mode}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        wanted = self.wanted(before)
        content, mode = wanted["content"], wanted["mode"]
        if content is None or mode is None or (content, mode) == (before.get("content"), before.get("mode")):
            return ()
        return (self.write(context, content, mode, before),)

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        """Size and SHA-256 in place of the content. A file that was not there is no unsupported setting."""
        wanted = self.wanted(before)
        found = []
        for setting, key in ((self.path, "content"), (f"{self.path}@mode", "mode")):
            result: Result = "refused"
            if after.get(key) == wanted[key]:
                result = "unchanged" if before.get(key) == wanted[key] else "applied"
            asked, was, now = wanted[key], before.get(key), after.get(key)
            if key == "content":
                asked, was, now = _summary(asked), _summary(was), _summary(now)
            found.append(SettingOutcome(setting, asked, was, now, result))
        return tuple(found)


def _summary(content: str | None) -> str | None:
    if content is None:
        return None
    data = decode_content(content)
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}"
