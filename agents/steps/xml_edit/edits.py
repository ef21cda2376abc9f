"""Typed edits of an XML document, and the pure function that applies them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from lxml import etree
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from agents.base.model import AS_TEXT, Frozen
from agents.formats.server_xml import ELEMENTS, setting_is_harmless
from agents.formats.xml_document import (
    NAME,
    ElementPath,
    XmlError,
    children,
    element_path,
    parse_xml,
    select,
    serialize,
)

PRESENT = "present"
_CONDITION = re.compile(r"\[[^\]]*\]")


def _xml_text(value: str) -> str:
    try:
        etree.Element("a").set("a", value)
    except ValueError:
        raise ValueError("the value has a character that XML cannot hold") from None
    return value


XmlName = Annotated[str, StringConstraints(pattern=rf"^{NAME}$")]
XmlValue = Annotated[str, AS_TEXT, AfterValidator(_xml_text), Field(max_length=4096)]


class XmlEdit(Frozen):
    """One edit. Values are kept to the letter, spaces included."""

    model_config = ConfigDict(str_strip_whitespace=False)


class SetAttributes(XmlEdit):
    """Sets attributes of the element at `select`; null removes one. `expect` elements must match."""

    op: Literal["set"]
    select: ElementPath
    attributes: dict[XmlName, XmlValue | None] = Field(min_length=1)
    expect: int = Field(1, ge=1, le=1000)


class AddElement(XmlEdit):
    """Adds an element under the one at `under`, as its first or last child or before the child at `before`."""

    op: Literal["add"]
    under: ElementPath
    tag: XmlName
    attributes: dict[XmlName, XmlValue] = Field(default_factory=dict)
    position: Literal["first", "last", "before"] = "last"
    before: ElementPath | None = None

    @model_validator(mode="after")
    def _before_what(self) -> AddElement:
        if (self.position == "before") != (self.before is not None):
            raise ValueError("'before' names the sibling for position: before, and belongs to no other position")
        return self


class RemoveElement(XmlEdit):
    """Removes the element at `select` with all that is in it. `expect` elements must match."""

    op: Literal["remove"]
    select: ElementPath
    expect: int = Field(1, ge=1, le=1000)


AnyXmlEdit = Annotated[SetAttributes | AddElement | RemoveElement, Field(discriminator="op")]


def edit_is_harmless(edit: AnyXmlEdit) -> bool:
    """Whether it only tunes; removing something takes from the run's own server and gives nothing."""
    if isinstance(edit, RemoveElement):
        return True
    if isinstance(edit, AddElement):
        element, given = edit.tag, dict(edit.attributes)
        if element not in ELEMENTS:
            return False
    else:
        element = _CONDITION.sub("", edit.select).rpartition("/")[2]
        given = {name: value for name, value in edit.attributes.items() if value is not None}
    return all(setting_is_harmless(element, name, value) for name, value in given.items())


@dataclass(frozen=True)
class XmlChange:
    """One attribute (or, with `attribute` "", one element) that an edit asks for. `before` is from before all edits."""

    path: str
    attribute: str
    before: str | None
    wanted: str | None

    @property
    def setting(self) -> str:
        return f"{self.path}@{self.attribute}" if self.attribute else self.path


def edit_document(data: bytes, edits: tuple[AnyXmlEdit, ...]) -> tuple[bytes, tuple[XmlChange, ...]]:
    """The document with all edits made, and what was asked of each attribute. Raises XmlError, and nothing else.

    It is the same bytes when it has them already. Comments, order, encoding and the XML declaration stay; line breaks
    inside tags do not.
    """
    root = parse_xml(data)
    touched: dict[tuple[etree._Element, str], str | None] = {}
    removed: list[XmlChange] = []
    changed = False
    for edit in edits:
        if isinstance(edit, SetAttributes):
            for element in _expected(root, edit.select, edit.expect):
                for name, value in edit.attributes.items():
                    touched.setdefault((element, name), element.get(name))
                    changed |= element.get(name) != value
                    _set(element, name, value)
        elif isinstance(edit, AddElement):
            element = _add(root, edit)
            touched.update({(element, name): None for name in edit.attributes or ("",)})
            changed = True
        else:
            for element in _expected(root, edit.select, edit.expect):
                removed.append(XmlChange(edit.select, "", PRESENT, None))
                _remove(element)
            changed = True
    asked = tuple(
        _change(element, name, before) for (element, name), before in touched.items() if _is_in(root, element)
    )
    return (serialize(root, data) if changed else data), (*asked, *dict.fromkeys(removed))


def effective(data: bytes, change: XmlChange) -> str | None:
    """What a document has for a setting: the attribute's value, or "present" for an element; None = it is not there."""
    found = select(parse_xml(data), change.path)
    if not found:
        return None
    return found[0].get(change.attribute) if change.attribute else PRESENT


def _change(element: etree._Element, name: str, before: str | None) -> XmlChange:
    return XmlChange(element_path(element), name, before, element.get(name) if name else PRESENT)


def _is_in(root: etree._Element, element: etree._Element) -> bool:
    return element is root or root in element.iterancestors()


def _expected(root: etree._Element, path: str, expect: int) -> list[etree._Element]:
    found = select(root, path)
    if len(found) != expect:
        several = f"{len(found)} elements match" if found else "no element matches"
        raise XmlError(
            f"{several} {path}, expected {expect}",
            hint="Compare the path with the file; [@attribute='value'] or [n] picks one of several.",
        )
    return found


def _set(element: etree._Element, name: str, value: str | None) -> None:
    if value is not None:
        element.set(name, value)
    elif name in element.attrib:
        del element.attrib[name]


def _add(root: etree._Element, edit: AddElement) -> etree._Element:
    parent = _expected(root, edit.under, 1)[0]
    namespace = etree.QName(parent).namespace
    element = etree.Element(etree.QName(namespace, edit.tag) if namespace else edit.tag, dict(edit.attributes))
    if edit.before is not None:
        sibling = _expected(root, edit.before, 1)[0]
        if sibling.getparent() is not parent:
            raise XmlError(f"{edit.before} is not a child of {edit.under}")
        place = parent.index(sibling)
    else:
        first = next(children(parent), None)
        place = len(parent) if edit.position == "last" or first is None else parent.index(first)
    _insert(parent, place, element)
    return element


def _insert(parent: etree._Element, place: int, element: etree._Element) -> None:
    """Inserts with the indentation of the siblings, so that the file stays readable."""
    previous = parent[place - 1] if place else None
    if previous is None:
        element.tail = parent.text if parent.text and not parent.text.strip() else None
        if not len(parent):
            element.tail, parent.text = parent.text, None
    elif place == len(parent):
        element.tail, previous.tail = previous.tail, parent.text if _blank(parent.text) else previous.tail
    else:
        element.tail = previous.tail if _blank(previous.tail) else None
    parent.insert(place, element)


def _blank(text: str | None) -> bool:
    return not (text or "").strip()


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is None:
        raise XmlError("the root element cannot be removed")
    previous = element.getprevious()
    # lxml drops the text behind an element with it: keep what is not blank, and the indentation of the closing tag.
    tail = element.tail or ""
    if previous is not None:
        previous.tail = tail if _blank(previous.tail) else (previous.tail or "") + tail.rstrip(" \t")
    else:
        parent.text = tail if _blank(parent.text) else (parent.text or "") + tail
    parent.remove(element)
