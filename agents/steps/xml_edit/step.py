"""Edits an XML configuration file, such as the server.xml of the run's Tomcat instance."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field

from agents.base.rights import Gate, Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.places import is_configuration
from agents.steps.base.remote_file import FileEditStep, decode_content
from agents.steps.base.step import State
from agents.steps.xml_edit.edits import (
    AddElement,
    AnyXmlEdit,
    RemoveElement,
    SetAttributes,
    XmlChange,
    edit_document,
    edit_is_harmless,
    effective,
)


class XmlEditStep(FileEditStep):
    """Edits of one XML file; `path` is inside the instance directory unless it is absolute."""

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights(
        "sets threads, limits, protocols and the like in the run's own server.xml and context.xml",
        gates={
            "path": Gate("any other file", lambda step: is_configuration(step.path)),
            "edits": Gate(
                "elements and values that name classes, places or applications",
                lambda step: all(map(edit_is_harmless, step.edits)),
            ),
        },
    )

    kind: Literal["xml_edit"] = "xml_edit"
    edits: tuple[AnyXmlEdit, ...] = Field(min_length=1, max_length=200)

    def title(self) -> str:
        return f"Edit {self.path}: {', '.join(_summary(edit) for edit in self.edits)}"

    def explains(self, path: str) -> bool:
        element, _, attribute = _names(path).partition("@")
        return self.wrote(path) or any(_explains(edit, element, attribute) for edit in self.edits)

    def parts(self) -> tuple[XmlEditStep, ...]:
        """One edit each, and of an edit that sets several attributes one for each of them."""
        return tuple(self.model_copy(update={"edits": (part,)}) for edit in self.edits for part in _parts(edit))

    def edit(self, data: bytes) -> bytes:
        return edit_document(data, self.edits)[0]

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        """One line per attribute (`Server/Service/Connector@maxThreads`), not the whole file."""
        content, now = before["content"], after["content"]
        if content is None:
            return tuple(SettingOutcome(_summary(edit), None, None, None, "unsupported") for edit in self.edits)
        data = decode_content(now) if now is not None else None
        return tuple(_outcome(change, data) for change in edit_document(decode_content(content), self.edits)[1])


def _parts(edit: AnyXmlEdit) -> tuple[AnyXmlEdit, ...]:
    if not isinstance(edit, SetAttributes):
        return (edit,)
    return tuple(edit.model_copy(update={"attributes": {name: value}}) for name, value in edit.attributes.items())


def _outcome(change: XmlChange, data: bytes | None) -> SettingOutcome:
    now = effective(data, change) if data is not None else None
    result: Result = "refused"
    if now == change.wanted:
        result = "unchanged" if change.before == change.wanted else "applied"
    return SettingOutcome(change.setting, change.wanted, change.before, now, result)


def _names(path: str) -> str:
    """The path without its conditions: Service/Connector[@port='8080'] -> Service/Connector."""
    return re.sub(r"\[[^\]]*\]", "", path)


def _explains(edit: AnyXmlEdit, element: str, attribute: str) -> bool:
    if isinstance(edit, AddElement):
        return f"/{_names(edit.under)}/{edit.tag}/" in f"/{element.rpartition('.')[2]}/"
    target = f"/{_names(edit.select).strip('/')}/"
    whole = f"/{element.rpartition('.')[2]}/"
    if isinstance(edit, RemoveElement):
        return target in whole
    return whole.endswith(target) and attribute in edit.attributes


def _summary(edit: AnyXmlEdit) -> str:
    if isinstance(edit, AddElement):
        return f"add {edit.tag} under {edit.under}"
    return f"{edit.op} {edit.select}"
