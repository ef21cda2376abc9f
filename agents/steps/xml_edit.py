"""Edits an XML configuration file, such as the server.xml of the run's Tomcat instance."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from agents.command import Command
from agents.errors import PlanError
from agents.steps.base import HostStep, Result, SettingOutcome, State, StepContext
from agents.steps.remote_file import (
    FilePath,
    decode_content,
    encode_content,
    parse_file,
    read_file,
    restore_file,
    write_file,
)
from agents.steps.xml_edits import AddElement, AnyXmlEdit, RemoveElement, XmlChange, edit_document, effective


class XmlEditStep(HostStep):
    """Edits of one XML file; `path` is inside the instance directory unless it is absolute."""

    kind: Literal["xml_edit"] = "xml_edit"
    path: FilePath
    edits: tuple[AnyXmlEdit, ...] = Field(min_length=1, max_length=200)

    def title(self) -> str:
        return f"Edit {self.path}: {', '.join(_summary(edit) for edit in self.edits)}"

    def explains(self, path: str) -> bool:
        element, _, attribute = _names(path).partition("@")
        return any(_explains(edit, element, attribute) for edit in self.edits)

    def probe(self, context: StepContext) -> Command:
        return read_file(context, self.path)

    def parse(self, output: bytes) -> State:
        return parse_file(self.path, output)

    def wanted(self, before: State) -> State:
        """The edited content. Raises PlanError when an edit does not fit the file."""
        return {**before, "content": self._edited(before)[0]}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        content, mode = before["content"], before["mode"]
        if content is None or mode is None:
            if self.unsupported == "skip":
                return ()
            raise PlanError(
                f"{self.path} does not exist on this host", hint="Correct the path, or set unsupported: skip."
            )
        edited, _ = self._edited(before)
        if edited is None or edited == content:
            return ()
        return (write_file(context, self.path, edited, mode, before.get("owner")),)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        # An XML file that did not exist was never made by this step, so there is nothing to remove.
        return restore_file(context, self.path, before) if before.get("content") is not None else ()

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        """One line per attribute (`Server/Service/Connector@maxThreads`), not the whole file."""
        if before["content"] is None:
            return tuple(SettingOutcome(_summary(edit), None, None, None, "unsupported") for edit in self.edits)
        now = after["content"]
        data = decode_content(now) if now is not None else None
        return tuple(_outcome(change, data) for change in self._edited(before)[1])

    def _edited(self, before: State) -> tuple[str | None, tuple[XmlChange, ...]]:
        content = before["content"]
        if content is None:
            return None, ()
        try:
            edited, changes = edit_document(decode_content(content), self.edits)
        except PlanError as error:
            raise PlanError(f"{self.path}: {error.message}", hint=error.hint) from None
        return encode_content(edited), changes


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
