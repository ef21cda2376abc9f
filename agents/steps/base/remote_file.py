"""Whole files on a host as step state: read with all their attributes, written beside and renamed, removed again."""

from __future__ import annotations

import base64
from abc import abstractmethod
from typing import Annotated, ClassVar

from pydantic import AfterValidator

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.steps.base import remote_file_scripts
from agents.steps.base.places import refusal
from agents.steps.base.step import HostStep, State, StepContext

MAX_FILE_BYTES = 512 * 1024

_BINARY = "base64:"


def _checked(path: str) -> str:
    if not path or "\0" in path or "\n" in path or len(path) > 1024:
        raise ValueError("a path is one line of at most 1024 characters")
    parts = path.removeprefix("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"'{path}' must name a file without '.', '..' and empty parts")
    if path.startswith("/") and (reason := refusal(path)):
        raise ValueError(f"{path} cannot be written by a step: {reason}")
    return path


FilePath = Annotated[str, AfterValidator(_checked)]
"""An absolute path in one of the allowed places, or one inside the instance directory of the run."""


class RemoteFileStep(HostStep):
    """A change of one file; `path` is inside the instance directory unless it is absolute. Absolute ones need root."""

    root: ClassVar[str] = "for a file outside of the run's own instance"

    path: FilePath

    @property
    def in_instance(self) -> bool:
        return not self.path.startswith("/")

    def wrote(self, path: str) -> bool:
        """Whether `path` of the effective configuration is this file, or a setting or line of it."""
        return path.partition("@")[0] == f"files.{self.path}"

    def probe(self, context: StepContext) -> Command:
        return script(
            remote_file_scripts.READ, *self._place(context), str(MAX_FILE_BYTES), privileged=not self.in_instance
        )

    def parse(self, output: bytes) -> State:
        """`content`, `mode`, `owner` and `attributes` (ACL, extended attributes); all None when there is no file.

        Raises PlanError when the path is nothing that a step may touch (a link, a directory, out of bounds).
        """
        return parse_file(self.path, output)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        """Brings the file back to `before`; removes it when there was none."""
        content, mode = before.get("content"), before.get("mode")
        if content is None or mode is None:
            return (script(remote_file_scripts.REMOVE, *self._place(context), privileged=not self.in_instance),)
        attributes = before.get("attributes") or ""
        return (self._write(context, remote_file_scripts.RESTORE, content, mode, before, attributes),)

    def write(self, context: StepContext, content: str, mode: str, before: State) -> Command:
        """Replaces the whole file in one rename; owner and attributes stay as they are."""
        return self._write(context, remote_file_scripts.WRITE, content, mode, before)

    def _write(
        self, context: StepContext, text: str, content: str, mode: str, before: State, *attributes: str
    ) -> Command:
        data = decode_content(content)
        args = (mode, before.get("owner") or "", str(len(data)), *attributes)
        return script(text, *self._place(context), *args, stdin=data, privileged=not self.in_instance, timeout_s=60)

    def _place(self, context: StepContext) -> tuple[str, str]:
        return context.path(self.path), context.instance if self.in_instance else ""


class FileEditStep(RemoteFileStep):
    """A change of some settings in a file that must exist."""

    @abstractmethod
    def edit(self, data: bytes) -> bytes:
        """The edited content. PlanError when the edits do not fit the file."""

    def wanted(self, before: State) -> State:
        """The edited content. Raises PlanError when an edit does not fit the file."""
        return {**before, "content": self._edited(before["content"])}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        content, mode = before["content"], before["mode"]
        if content is None or mode is None:
            if self.unsupported == "skip":
                return ()
            raise PlanError(
                f"{self.path} does not exist on this host", hint="Correct the path, or set unsupported: skip."
            )
        edited = self._edited(content)
        return () if edited is None or edited == content else (self.write(context, edited, mode, before),)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        # A file that did not exist was never made by this step, so there is nothing to remove.
        return super().revert(context, before) if before.get("content") is not None else ()

    def _edited(self, content: str | None) -> str | None:
        if content is None:
            return None
        try:
            return encode_content(self.edit(decode_content(content)))
        except PlanError as error:
            raise PlanError(f"{self.path}: {error.message}", hint=error.hint) from None


def parse_file(path: str, output: bytes) -> State:
    """The state of a file from what `read_command` printed; PlanError when it cannot be edited, ParseError when cut."""
    header, _, rest = output.partition(b"\n")
    word, _, told = header.decode("utf-8", "replace").partition(" ")
    if word == "absent":
        return {"content": None, "mode": None, "owner": None, "attributes": None}
    if word == "refused":
        raise PlanError(f"{path} cannot be edited: {told}", hint="Name a regular file of its own.")
    fields = told.split()
    if word != "file" or len(fields) != 4 or not (fields[2].isdigit() and fields[3].isdigit()):
        raise ParseError(f"no file state for {path}", line=1)
    *attributes, content = rest.split(b"\n", int(fields[3]))
    if len(attributes) != int(fields[3]) or len(content) != int(fields[2]):
        raise ParseError(
            f"{path} changed while it was read, or the output was cut: {len(content)} of {fields[2]} bytes"
        )
    return {
        "content": encode_content(content),
        "mode": fields[0].zfill(4),
        "owner": fields[1],
        "attributes": b"\n".join(attributes).decode("utf-8", "replace"),
    }


def encode_content(data: bytes) -> str:
    """File content as text that any database can hold: as it is when it is UTF-8, else with a base64 mark."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if (text or not data) and "\0" not in text and not text.startswith(_BINARY):
        return text
    return _BINARY + base64.b64encode(data).decode("ascii")


def decode_content(content: str) -> bytes:
    """The bytes of a file from its state, where what is no UTF-8 stands as base64."""
    if content.startswith(_BINARY):
        return base64.b64decode(content.removeprefix(_BINARY))
    return content.encode("utf-8")
