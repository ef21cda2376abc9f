"""Form fields generated from a pydantic model: its JSON as flat texts, the inputs for them, and the JSON read back.

A form is a flat mapping `dotted path -> text`, so what somebody typed is never lost, whatever is wrong with it. An
empty field means the model's default, which the placeholder shows: a document holds only what somebody chose.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from experiments.registry.documents.yaml_text import dump_yaml, parse_yaml
from experiments.registry.errors import RequestError

Shape = Literal["int", "float", "str", "text", "bool", "choice", "lines", "command", "files", "yaml"]
Texts = Mapping[str, str]

UNITS = {
    "_rps": "requests/s",
    "_tps": "transactions/s",
    "_per_s": "per second",
    "_per_min": "per minute",
    "_bytes": "bytes",
    "_mb": "MB",
    "_ms": "ms",
    "_s": "s",
    "_ratio": "ratio",
}
"""By the end of a name; the longer ends first."""
LONG_TEXTS = frozenset({"content", "run", "undo", "observe", "script", "description", "body", "jmx", "conf", "sql"})
COMMANDS = frozenset({"argv", "command", "version"})
"""Lists of words that are a command line: one field, parted into words as a shell would."""
FILES = frozenset({"files", "scripts"})
"""Mappings of names to texts: each is a name with an editor."""
SHORT_WORDS = {
    "jvm": "JVM",
    "cpu": "CPU",
    "cpus": "CPUs",
    "http": "HTTP",
    "url": "URL",
    "id": "ID",
    "thp": "THP",
    "irq": "IRQ",
    "irqs": "IRQs",
    "xml": "XML",
    "jmx": "JMX",
    "html": "HTML",
    "sql": "SQL",
    "tls": "TLS",
}


@dataclass(frozen=True)
class FileRow:
    """One file of a field: its inputs are called `name` + `.name` and `.text`; the last row of a field is empty."""

    name: str
    file: str
    text: str

    @property
    def rows(self) -> int:
        """Lines that its editor shows."""
        return min(max(self.text.count("\n") + 2, 3), 24)


@dataclass(frozen=True)
class ModelField:
    """One input. `name` is the dotted path in the document, `default` what an empty field means."""

    name: str
    label: str
    shape: Shape
    value: str = ""
    default: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    files: tuple[FileRow, ...] = ()

    @property
    def widget(self) -> str:
        """area, files, select or line."""
        if self.shape == "files":
            return "files"
        if self.shape in ("text", "lines", "command", "yaml"):
            return "area"
        return "select" if self.choices else "line"

    @property
    def rows(self) -> int:
        """Lines that an area shows."""
        return min(max(self.value.count("\n") + 2, 3), 16)


@dataclass(frozen=True)
class _Leaf:
    path: str
    shape: Shape
    default: object
    required: bool
    choices: tuple[str, ...]
    help: str


def fields_of(model: type[BaseModel], texts: Texts, prefix: str = "") -> list[ModelField]:
    """The inputs of `model`, required ones first. Nested models are flattened; constants (`kind`) are left out."""
    leaves = sorted(_leaves_of(model), key=lambda leaf: (not leaf.required, "." in leaf.path))
    return [_field(leaf, texts, prefix) for leaf in leaves]


def flatten(model: type[BaseModel], body: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The texts of `body`, for the fields that it gives a value."""
    texts: dict[str, str] = {}
    for leaf in _leaves_of(model):
        value: Any = body
        for step in leaf.path.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if leaf.shape == "files" and value:
            for row, (file, text) in enumerate(value.items()):
                texts |= {f"{prefix}{leaf.path}.{row}.name": file, f"{prefix}{leaf.path}.{row}.text": text}
        elif value is not None:
            texts[prefix + leaf.path] = _show(leaf.shape, value)
    return texts


def read_fields(model: type[BaseModel], texts: Texts, prefix: str = "") -> dict[str, Any]:
    """The JSON of `model` in a form; empty fields stay out. RequestError tells what is no YAML or no command line."""
    found: dict[str, Any] = {}
    for leaf in _leaves_of(model):
        text = texts.get(prefix + leaf.path, "").replace("\r\n", "\n")
        value: Any = None
        if leaf.shape == "files":
            value = _read_files(texts, prefix + leaf.path)
        elif text.strip():
            value = _read_command(text, leaf.path) if leaf.shape == "command" else _read(leaf.shape, text)
        if value is not None:
            node = found
            *parents, last = leaf.path.split(".")
            for parent in parents:
                node = node.setdefault(parent, {})
            node[last] = value
    return found


def label_of(name: str) -> str:
    """`offered_rate_rps` as people read it: Offered rate (requests/s)."""
    for suffix, unit in UNITS.items():
        if name.endswith(suffix) and name != suffix[1:]:
            return f"{_words(name.removesuffix(suffix))} ({unit})"
    return _words(name)


def read_scalar(type_name: str, text: str) -> bool | int | float | str:
    """A typed value as somebody wrote it; the text itself where it is not of the type, for the model to refuse."""
    match type_name:
        case "int":
            return _number(text, int)
        case "float":
            return _number(text, float)
        case "bool":
            return _truth(text)
    return text.strip()


def show_scalar(value: object) -> str:
    """A value as it stands in a field."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def _leaves_of(model: type[BaseModel]) -> list[_Leaf]:
    schema = model.model_json_schema(by_alias=True)
    return list(_leaves(schema, schema.get("$defs", {}), ""))


def _leaves(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str, usual: Mapping[str, Any] | None = None
) -> Iterator[_Leaf]:
    """`usual`: what the fields of a nested model are where the model around it says so."""
    required = schema.get("required", ())
    for name, raw in schema.get("properties", {}).items():
        node = _resolve(raw, definitions)
        if "const" in node:
            continue
        if node.get("type") == "object" and "properties" in node:
            yield from _leaves(node, definitions, f"{prefix}{name}.", raw.get("default"))
            continue
        shape = _shape(name, node)
        choices = {"choice": tuple(map(str, node.get("enum", ()))), "bool": ("true", "false")}.get(shape, ())
        default = (usual or {}).get(name, raw.get("default"))
        yield _Leaf(prefix + name, shape, default, name in required, choices, raw.get("description", ""))


def _field(leaf: _Leaf, texts: Texts, prefix: str) -> ModelField:
    value = texts.get(prefix + leaf.path, "")
    parent, _, name = leaf.path.rpartition(".")
    hints = {"lines": "One per line.", "yaml": "As YAML.", "command": "As you would type it."}
    return ModelField(
        name=prefix + leaf.path,
        label=f"{_words(parent)}: {label_of(name)}" if parent else label_of(name),
        shape=leaf.shape,
        value=value,
        default=_show(leaf.shape, leaf.default) if leaf.default not in (None, "", [], {}) else "",
        required=leaf.required,
        choices=() if "${" in value else leaf.choices,
        help=leaf.help or hints.get(leaf.shape, ""),
        files=tuple(_files(texts, prefix + leaf.path)) if leaf.shape == "files" else (),
    )


def _files(texts: Texts, name: str) -> Iterator[FileRow]:
    """The files that are there, then an empty row for one more."""
    found = (re.fullmatch(rf"{re.escape(name)}\.(\d{{1,4}})\.(?:name|text)", key) for key in texts)
    rows = sorted({int(match[1]) for match in found if match})
    for row in rows:
        file, text = texts.get(f"{name}.{row}.name", ""), texts.get(f"{name}.{row}.text", "")
        if file.strip() or text.strip():
            yield FileRow(f"{name}.{row}", file, text)
    yield FileRow(f"{name}.{max(rows, default=-1) + 1}", "", "")


def _read_files(texts: Texts, name: str) -> dict[str, str] | None:
    """The files by their names; None without any. RequestError for a text without a name, or a name twice."""
    found: dict[str, str] = {}
    for row in _files(texts, name):
        file = row.file.strip()
        if not file and row.text.strip():
            raise RequestError("Give the file a name.", field=name)
        if file in found:
            raise RequestError(f"There are two files {file}.", field=name)
        if file:
            found[file] = row.text.replace("\r\n", "\n")
    return found or None


def _read_command(text: str, name: str) -> list[str]:
    """The words of a command line, parted as a shell would; nothing is expanded. RequestError names what is wrong."""
    try:
        return shlex.split(text)
    except ValueError:
        raise RequestError("A quotation mark of this command line has no end.", field=name) from None


def _show_command(words: Sequence[str]) -> str:
    return " ".join(word if re.fullmatch(r"[^\s'\"\\]+", word) else shlex.quote(word) for word in words)


def _resolve(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The schema behind a reference, or the one alternative of an optional field."""
    found = dict(node)
    if "$ref" in found:
        return _resolve({**definitions[found.pop("$ref").rpartition("/")[2]], **found}, definitions)
    alternatives = [option for option in found.get("anyOf", ()) if option.get("type") != "null"]
    return _resolve(alternatives[0], definitions) if len(alternatives) == 1 else found


def _shape(name: str, node: Mapping[str, Any]) -> Shape:
    match node.get("type"):
        case "integer":
            return "int"
        case "number":
            return "float"
        case "boolean":
            return "bool"
        case "string" if "enum" in node:
            return "choice"
        case "string":
            return "text" if name in LONG_TEXTS else "str"
        case "array" if node.get("items", {}).get("type") == "string":
            return "command" if name in COMMANDS else "lines"
        case "object" if name in FILES and node.get("additionalProperties", {}).get("type") == "string":
            return "files"
    return "yaml"


def _show(shape: Shape, value: Any) -> str:
    if shape == "command":
        return _show_command(value)
    if shape == "lines" and value and not value[0].startswith("- ") and all(map(_is_line, value)):
        return "\n".join(value)
    if isinstance(value, list | tuple | dict):
        text = dump_yaml({"value": value}).partition("\n")[2].removesuffix("...\n")
        return textwrap.dedent(text).removesuffix("\n")
    return show_scalar(value)


def _is_line(item: object) -> bool:
    return isinstance(item, str) and item != "" and item == item.strip() and "\n" not in item


def _read(shape: Shape, text: str) -> Any:
    if shape == "yaml" or (shape == "lines" and text.lstrip().startswith("- ")):
        return parse_yaml("value:\n" + textwrap.indent(text, "  ") + "\n")["value"]
    if shape == "lines":
        return [line.strip() for line in text.split("\n") if line.strip()]
    return text if shape == "text" else read_scalar(shape, text)


def _number(text: str, of: type[int] | type[float]) -> int | float | str:
    """The number, or the text itself: a reference such as `${threads}`, or what the model will refuse by name."""
    try:
        return of(text)
    except ValueError:
        return text.strip()


def _truth(text: str) -> bool | str:
    word = text.strip().lower()
    return word == "true" if word in ("true", "false") else text.strip()


def _words(name: str) -> str:
    words = [SHORT_WORDS.get(word, word) for word in name.split("_") if word]
    text = " ".join(words)
    return text[:1].upper() + text[1:]
