"""A sheet as Markdown and as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.registry.markdown_text import cell
from experiments.telling.run_list.csv_text import csv_line
from experiments.telling.sharing.sheet import Sheet, Table


def sheet_markdown(sheet: Sheet, *, url: str, pictures: Sequence[tuple[str, str]] = ()) -> str:
    """The whole sheet. `pictures` are (what it shows, address)."""
    parts = [f"# {cell(sheet.title)}", f"**{cell(sheet.sentence)}**"]
    if sheet.caution:
        parts.append(f"> {cell(sheet.caution)}")
    parts.append("\n".join(f"- {cell(fact.label)}: {cell(fact.value)}" for fact in sheet.facts))
    parts += [f"![{cell(title)}]({address})" for title, address in pictures]
    for section in sheet.sections:
        parts.append(f"## {cell(section.title)}")
        if isinstance(section, Table):
            parts += [_table(section), cell(section.note)]
        else:
            parts.append("\n".join(f"- {cell(sentence)}" for sentence in section.sentences))
    parts.append(f"As of {sheet.frozen_at:%Y-%m-%d %H:%M} UTC, BenchHub {cell(sheet.made_by_version)}, {url}")
    return "\n\n".join(part for part in parts if part) + "\n"


def sheet_csv(sheet: Sheet) -> str:
    """Its facts and tables below each other, an empty line between them; safe to open in a spreadsheet."""
    rows: list[Sequence[str]] = [("title", sheet.title), ("answer", sheet.sentence)]
    rows += [(fact.label, fact.value) for fact in sheet.facts]
    for section in sheet.sections:
        if isinstance(section, Table):
            rows += [(), (section.title,), section.heads, *section.rows]
    return "".join(map(csv_line, rows))


def _table(table: Table) -> str:
    count = len(table.heads)
    rule = ["---" if index < table.numbers_from else "---:" for index in range(count)]
    rows = [table.heads, *table.rows]
    lines = [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    lines.insert(1, f"| {' | '.join(rule)} |")
    return "\n".join(lines)
