"""Edits files of key=value lines: catalina.properties, bootstrap.properties, many .conf files, .ini with sections."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from agents.base.errors import PlanError
from agents.base.model import AS_TEXT
from agents.base.rights import Gate, Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.formats.java_options import property_is_harmless
from agents.formats.tuning_settings import BY_FILE, setting_is_harmless
from agents.steps.base.places import is_configuration
from agents.steps.base.remote_file import FileEditStep, decode_content
from agents.steps.base.step import State


def _value(text: str) -> str:
    if any(c != "\t" and not c.isprintable() for c in text):
        raise ValueError("a value is one line of printable characters")
    if text[:1].isspace():
        raise ValueError("a blank at the beginning of a value would be lost")
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise ValueError("a backslash at the end would join the next line")
    return text


Key = Annotated[str, StringConstraints(pattern=r"^[^\s=:#!\\\x00-\x1f\x7f][^\s=:\\\x00-\x1f\x7f]{0,255}$")]
Value = Annotated[str, AS_TEXT, StringConstraints(max_length=4096), AfterValidator(_value)]


class PropertiesStep(FileEditStep):
    """Sets and removes keys of a file of `key = value` lines; comments, order and line ends stay.

    Values are written to the letter. A key that is there several times gets the value everywhere, a new one comes last.
    `separator` is what stands between key and value; blanks around it stay as they are. ` ;` is for directives of
    nginx, which end in a semicolon and have to be there already, since they mean nothing outside their block. `section`
    is the one that is meant in a file that has them, as .ini and my.cnf do: what stands elsewhere is left alone, and
    one that is not there comes last.
    """

    model_config = ConfigDict(str_strip_whitespace=False)

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights(
        "sets words and numbers in the configuration of the run's own server",
        data=("section",),
        gates={
            "remove": Gate(
                "taking out settings that do more than tune",
                lambda step: (known := BY_FILE.get(step.path)) is None or known.issuperset(step.remove),
            ),
            "path": Gate("any other file", lambda step: is_configuration(step.path) or step.path in BY_FILE),
            "values": Gate(
                "values that name classes, places or addresses, and properties that open doors",
                lambda step: all(step.tunes(name, value) for name, value in step.values.items()),
            ),
        },
    )

    kind: Literal["properties"] = "properties"
    values: dict[Key, Value] = Field(default_factory=dict, max_length=200)
    remove: tuple[Key, ...] = Field((), max_length=200)
    separator: Literal["=", ":", " ", " ;"] = "="
    section: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/@ -]{0,100}$")] = ""

    @model_validator(mode="after")
    def _some(self) -> PropertiesStep:
        if not self.values and not self.remove:
            raise ValueError("give values to set or keys to remove")
        if both := set(self.values) & set(self.remove):
            raise ValueError(f"{min(both)} cannot be set and removed at once")
        return self

    def tunes(self, name: str, value: str) -> bool:
        """Whether it sets a word or a number that only tunes the server that reads the file."""
        known = BY_FILE.get(self.path)
        return property_is_harmless(name, value) if known is None else setting_is_harmless(known, name, value)

    def title(self) -> str:
        # The keys alone: a value may be a secret.
        changes = [*(f"set {key}" for key in self.values), *(f"remove {key}" for key in self.remove)]
        more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
        where = f"{self.path} [{self.section}]" if self.section else self.path
        return f"Edit {where}: {', '.join(changes[:3])}{more}"

    def parts(self) -> tuple[PropertiesStep, ...]:
        alone = [self.model_copy(update={"values": {key: value}, "remove": ()}) for key, value in self.values.items()]
        return (*alone, *(self.model_copy(update={"values": {}, "remove": (key,)}) for key in self.remove))

    def explains(self, path: str) -> bool:
        if "@line[" in path:  # of a file that nobody could read as settings
            return self.wrote(path)
        return any(path.endswith((f".{key}", f"@{key}")) for key in (*self.values, *self.remove))

    def edit(self, data: bytes) -> bytes:
        """The edited content; the same bytes when all is so already. PlanError when the file is no text."""
        if b"\0" in data:
            raise PlanError("this is no text file", hint="Name a file of key=value lines.")
        before, lines, after = self._parted(_logical_lines(_text(data)))
        for key, value in self.values.items():
            lines = self._with(lines, key, _text(value.encode()))
        kept = [line for line in lines if (entry := self._entry(line)) is None or entry["key"] not in self.remove]
        begun = self._begun(before) if self.section and kept else before
        return "".join([*begun, *kept, *after]).encode("latin-1")

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        """One line per key."""
        was, now = (self._read(state["content"]) for state in (before, after))
        outcomes = []
        for key, wanted in {**self.values, **dict.fromkeys(self.remove)}.items():
            result: Result = "refused"
            if before["content"] is None:
                result = "unsupported"
            elif now.get(key) == wanted:
                result = "unchanged" if was.get(key) == wanted else "applied"
            outcomes.append(SettingOutcome(f"{self.path}@{key}", wanted, was.get(key), now.get(key), result))
        return tuple(outcomes)

    def _read(self, content: str | None) -> dict[str, str]:
        if content is None:
            return {}
        _, lines, _ = self._parted(_logical_lines(_text(decode_content(content))))
        entries = [entry for line in lines if (entry := self._entry(line))]
        return {entry["key"]: _joined(entry).encode("latin-1").decode("utf-8", "replace") for entry in entries}

    def _parted(self, lines: list[str]) -> tuple[list[str], list[str], list[str]]:
        """What stands before the section, its lines, and what follows it; PlanError when it is there twice."""
        if not self.section:
            return [], lines, []
        heads = [number for number, line in enumerate(lines) if line.strip().startswith("[")]
        mine = [number for number in heads if lines[number].strip() == f"[{self.section}]"]
        if len(mine) > 1:
            raise PlanError(
                f"the section [{self.section}] is there {len(mine)} times", hint="Join them in the file of the host."
            )
        if not mine:
            return lines, [], []
        start = mine[0] + 1
        end = next((number for number in heads if number >= start), len(lines))
        while end > start and not lines[end - 1].strip():
            end -= 1  # a blank line belongs to what follows it
        return lines[:start], lines[start:end], lines[end:]

    def _begun(self, before: list[str]) -> list[str]:
        """What stands before the lines of the section, its heading and a line's end included."""
        newline = "\r\n" if before and before[0].endswith("\r\n") else "\n"
        if before and not before[-1].endswith(("\n", "\r")):
            before = [*before[:-1], before[-1] + newline]
        there = any(line.strip() == f"[{self.section}]" for line in before)
        return before if there else [*before, f"[{self.section}]{newline}"]

    def _with(self, lines: list[str], key: str, value: str) -> list[str]:
        found = {i: entry for i, line in enumerate(lines) if (entry := self._entry(line)) and entry["key"] == key}
        if found:
            changed = {i: f"{e['start']}{value}{e['end']}" for i, e in found.items() if _joined(e) != value}
            return [changed.get(i, line) for i, line in enumerate(lines)]
        if self.separator == " ;":
            raise PlanError(
                f"{self.path} has no directive {key}", hint="Give the application a value of its own for it first."
            )
        ends = [end[0] for line in lines[-2:] if (end := _END.search(line)) and end[0]]
        new_line = ends[-1] if ends else "\n"
        if lines and not lines[-1].endswith(("\n", "\r")):
            lines = [*lines[:-1], lines[-1] + new_line]
        if lines and _goes_on(lines[-1]):
            lines = [*lines, new_line]
        between = self.separator if self.separator != ":" else ": "
        return [*lines, f"{key}{between}{value}{new_line}"]

    def _entry(self, line: str) -> re.Match[str] | None:
        if self.section and line.lstrip().startswith(";"):
            return None  # a comment where there are sections
        return _ENTRIES[self.separator].fullmatch(line)


# Bytes as Latin-1, so that whatever is in the file comes out of it again.
_REST = r"(?P<value>.*?)(?P<end>(?:\r\n|\n|\r)?)"
_ENTRIES = {
    "=": re.compile(rf"(?P<start>[ \t]*(?P<key>[^\s=#!][^\s=]*)[ \t]*=[ \t]*){_REST}", re.DOTALL | re.ASCII),
    ":": re.compile(rf"(?P<start>[ \t]*(?P<key>[^\s:#!][^\s:]*)[ \t]*:[ \t]*){_REST}", re.DOTALL | re.ASCII),
    " ;": re.compile(
        r"(?P<start>[ \t]*(?P<key>[^\s#;{}]+)[ \t]+)(?P<value>[^{};]*?)(?P<end>[ \t]*;[^{}]*?(?:\r\n|\n|\r)?)",
        re.DOTALL | re.ASCII,
    ),
    " ": re.compile(rf"(?P<start>[ \t]*(?P<key>[^\s#!]\S*)(?:[ \t]+|(?=[\r\n]|$))){_REST}", re.DOTALL | re.ASCII),
}
_END = re.compile(r"(?:\r\n|\n|\r)?\Z")


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _logical_lines(text: str) -> list[str]:
    """Lines with their ends; one that ends in a backslash goes on in the next, comments never do."""
    lines: list[str] = []
    for line in re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+", text):
        if lines and _goes_on(lines[-1]):
            lines[-1] += line
        else:
            lines.append(line)
    return lines


def _goes_on(line: str) -> bool:
    text = _END.sub("", line, count=1)
    return not re.match(r"[ \t]*[#!]", line) and line != text and (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _joined(entry: re.Match[str]) -> str:
    """The value as a reader of the file sees it: continued lines are one."""
    return re.sub(r"\\(?:\r\n|\n|\r)[ \t]*", "", entry["value"])
