"""XML result files: requests are the elements directly below `testResults`; what they hold are parts of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

import polars as pl
from lxml import etree

from agents.base.errors import ParseError
from agents.drivers.jmeter.jtl.form import (
    ACTIVE,
    BYTES,
    CODE,
    ELAPSED,
    KINDS,
    LABEL,
    MESSAGE,
    SENT,
    SUCCESS,
    TIME,
    TRANSACTION,
    Stamps,
)
from agents.drivers.jmeter.jtl.lines import MAX_ELAPSED_MS
from agents.drivers.jmeter.jtl.tally import Part, Tally, count
from agents.drivers.jmeter.jtl.totals import report
from agents.results.report import LoadReport

FORMAT = "jmeter-jtl-xml"
ROWS_AT_A_TIME = 20_000
MAX_DEPTH = 50

_SAMPLES = ("httpSample", "sample")
_NUMBERS = {ELAPSED: "t", BYTES: "by", SENT: "sby", ACTIVE: "na"}
_WORDS = {LABEL: "lb", CODE: "rc", MESSAGE: "rm"}
_NAMES = [name for name in KINDS if name in (TIME, SUCCESS, *_NUMBERS, *_WORDS)]
_STAMPS = Stamps()

Row = dict[str, object]


def read_xml(source: BinaryIO, on_progress: Callable[[int], None] = lambda _bytes: None) -> LoadReport:
    """The report of the results in `source`. ParseError when they are no results; a cut file gives what is whole."""
    tally, notes = Tally(), []
    batch: list[Row] = []
    try:
        for rows in _requests(source):
            requests = [row for row in rows if row is not None]
            tally.parts += len(rows) - len(requests)
            batch += requests
            if len(batch) >= ROWS_AT_A_TIME:
                tally.add(_counted(batch))
                batch = []
                on_progress(source.tell())
    except etree.XMLSyntaxError as error:
        if not tally.rows and not batch:
            raise ParseError(f"this is no whole XML: {error.msg}", line=error.lineno) from error
        notes.append(f"the file is broken off in line {error.lineno}; the results before it were counted")
    if batch:
        tally.add(_counted(batch))
    on_progress(source.tell())
    return report(tally, FORMAT, notes)


def _requests(source: BinaryIO) -> Iterator[list[Row | None]]:
    """The rows of one element below the root at a time, which is then forgotten."""
    depth = 0
    context = etree.iterparse(
        source,
        events=("start", "end"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    for event, element in context:
        if event == "start":
            depth += 1
            if depth == 1:
                _check_root(element)
            elif depth > MAX_DEPTH:
                raise ParseError(f"the elements are nested deeper than {MAX_DEPTH}", line=_line(element))
            continue
        depth -= 1
        if depth == 1:
            if element.tag in _SAMPLES:
                yield list(_rows(element))
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]


def _check_root(root: etree._Element) -> None:
    if root.getroottree().docinfo.internalDTD is not None:
        raise ParseError("XML with a document type declaration is not accepted", line=1)
    if root.tag != "testResults":
        raise ParseError(f"<{str(root.tag)[:60]}> is not the beginning of JMeter's results", line=_line(root))


def _rows(element: etree._Element, *, inside: bool = False) -> Iterator[Row | None]:
    """The element's own row and, below a transaction, those of its requests. Parts of a request give None."""
    row = _row(element)
    yield None if inside else row
    spans = str(row[MESSAGE]).startswith(TRANSACTION)
    for child in element.iterchildren(*_SAMPLES):
        yield from _rows(child, inside=inside or not spans)


def _row(element: etree._Element) -> Row:
    success = (element.get("s") or "").lower()
    if success not in ("true", "false"):
        raise ParseError("a result does not say whether it succeeded (s)", line=_line(element))
    row: Row = {SUCCESS: success == "true"}
    try:
        row[TIME] = _STAMPS.read(element.get("ts") or "")
        for name, attribute in _NUMBERS.items():
            row[name] = _number(element.get(attribute), needed=name == ELAPSED)
    except ValueError as error:
        raise ParseError(f"a result has a number that is none: {str(error)[:60]}", line=_line(element)) from error
    for name, attribute in _WORDS.items():
        row[name] = element.get(attribute) or ""
    return row


def _line(element: etree._Element) -> int | None:
    return cast("int | None", element.sourceline)  # the stubs know no type of it


def _number(text: str | None, *, needed: bool) -> int | None:
    if text is None and not needed:
        return None
    if text is None or not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit() or len(text) > 15:
        raise ValueError(text)
    found = int(text)
    if needed and abs(found) > MAX_ELAPSED_MS:
        raise ValueError(text)
    return found


def _counted(rows: list[Row]) -> Part:
    schema: dict[str, type[pl.DataType]] = {name: KINDS[name] for name in _NAMES}
    return count(pl.DataFrame(rows, schema=schema))
