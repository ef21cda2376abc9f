"""XML configuration files: read without DTD, entities or network, addressed by short paths, written back as they were.

A path is `Server/Service/Connector[@port='8080']`: element names from the root down, each with optional conditions
`[@attribute='value']` and `[n]` (from 1, among those that meet the conditions before it). The root's own name may be
left out. Names are compared without their namespace.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Annotated

from lxml import etree
from pydantic import AfterValidator

from agents.base.errors import PlanError

NAME = r"[A-Za-z_][A-Za-z0-9_.\-]*"
_CONDITION = rf"\[(?:@{NAME}=(?:'[^'\[\]]*'|\"[^\"\[\]]*\")|[1-9][0-9]{{0,3}})\]"
_STEP = rf"{NAME}(?:{_CONDITION})*"
_PATH = re.compile(rf"/?{_STEP}(?:/{_STEP})*")
_DECLARATION = re.compile(rb"\A(?:\xef\xbb\xbf)?<\?xml\s[^>]*\?>\s*")


class XmlError(PlanError):
    """The XML cannot be read, or an edit does not fit it."""


def _checked(path: str) -> str:
    if not _PATH.fullmatch(path):
        raise ValueError(f"'{path}' is not an element path; write for example Service/Connector[@port='8080']")
    return path


ElementPath = Annotated[str, AfterValidator(_checked)]


def parse_xml(data: bytes) -> etree._Element:
    """The root element. XmlError when this is not well-formed, or has a DTD (which could hold entities)."""
    # A parser per document: lxml parsers keep state, and they are not safe to share between threads.
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, strip_cdata=False
    )
    try:
        root = etree.fromstring(data, parser)
        encoding = codecs.lookup(root.getroottree().docinfo.encoding or "UTF-8").name
    except (etree.LxmlError, ValueError, LookupError) as error:
        raise XmlError(f"this is not well-formed XML: {error}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise XmlError("XML with a document type declaration is not accepted", hint="Remove the <!DOCTYPE> line.")
    if encoding.startswith(("utf-16", "utf-32")):
        raise XmlError(f"XML in {encoding} is not accepted", hint="Save the file as UTF-8.")
    return root


def serialize(root: etree._Element, original: bytes) -> bytes:
    """The document in the encoding of `original`, whose XML declaration is kept to the letter."""
    around = [*reversed(list(root.itersiblings(preceding=True))), root, *root.itersiblings()]
    text = "\n".join(str(etree.tostring(node, encoding="unicode", with_tail=False)) for node in around)
    declaration = _DECLARATION.match(original)
    encoding = root.getroottree().docinfo.encoding or "UTF-8"
    data = text.encode(encoding, "xmlcharrefreplace") + (b"\n" if original.endswith(b"\n") else b"")
    return (declaration[0] if declaration else b"") + data


def children(element: etree._Element) -> Iterator[etree._Element]:
    """The child elements, without comments and processing instructions."""
    return element.iterchildren("*")


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace."""
    return etree.QName(element).localname


def select(root: etree._Element, path: str) -> list[etree._Element]:
    """Every element at `path`, in document order."""
    steps = re.findall(_STEP, _checked(path))
    if _name(steps[0]) == local_name(root):
        found = _filtered([root], steps.pop(0))
    elif path.startswith("/"):
        return []
    else:
        found = [root]
    for step in steps:
        found = [match for parent in found for match in _filtered(list(children(parent)), step)]
    return found


def _name(step: str) -> str:
    return step.partition("[")[0]


def _filtered(elements: list[etree._Element], step: str) -> list[etree._Element]:
    found = [element for element in elements if local_name(element) == _name(step)]
    for condition in re.findall(_CONDITION, step):
        inside = condition[1:-1]
        if inside.startswith("@"):
            attribute, _, quoted = inside[1:].partition("=")
            found = [element for element in found if element.get(attribute) == quoted[1:-1]]
        else:
            found = found[int(inside) - 1 : int(inside)]
    return found


def element_path(element: etree._Element) -> str:
    """`Server/Service/Connector`; the second of a name is `Connector[2]`, so one more renames none before it."""
    names = []
    current: etree._Element | None = element
    while current is not None:
        parent = current.getparent()
        name = local_name(current)
        if parent is not None:
            place = [c for c in children(parent) if local_name(c) == name].index(current)
            name += f"[{place + 1}]" if place else ""
        names.append(name)
        current = parent
    return "/".join(reversed(names))


def flatten(data: bytes) -> dict[str, str]:
    """Every attribute as `path@attribute`, and the text of elements without children as `path`."""
    flat: dict[str, str] = {}
    _flatten_into(flat, parse_xml(data), "")
    return flat


def _flatten_into(flat: dict[str, str], element: etree._Element, path: str) -> None:
    path = path or local_name(element)
    for name, value in element.attrib.items():
        flat[f"{path}@{etree.QName(str(name)).localname}"] = str(value)
    seen: dict[str, int] = {}
    for child in children(element):
        name = local_name(child)
        seen[name] = seen.get(name, 0) + 1
        _flatten_into(flat, child, f"{path}/{name}" + (f"[{seen[name]}]" if seen[name] > 1 else ""))
    if not seen and (text := (element.text or "").strip()):
        flat[path] = text
