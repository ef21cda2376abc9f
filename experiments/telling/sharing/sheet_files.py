"""A sheet as a file to keep: Markdown, CSV or PDF, with its plots as pictures; for pages and the API."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse
from django.template.loader import render_to_string

from experiments.telling.sharing.pdf import sheet_pdf
from experiments.telling.sharing.pictures import png
from experiments.telling.sharing.sheet import Sheet
from experiments.telling.sharing.texts import sheet_csv, sheet_markdown

CONTENT_TYPES = {
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "pdf": "application/pdf",
}


def sheet_file(
    sheet: Sheet, form: str, *, name: str, url: str, pictures: Sequence[tuple[str, str]] = ()
) -> HttpResponse:
    """The sheet in a form of `CONTENT_TYPES`, for download. `pictures` are what Markdown links to: (title, address)."""
    response = HttpResponse(_content(sheet, form, url, pictures), CONTENT_TYPES[form])
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    response.headers["Cache-Control"] = "private, no-cache"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _content(sheet: Sheet, form: str, url: str, pictures: Sequence[tuple[str, str]]) -> str | bytes:
    if form == "md":
        return sheet_markdown(sheet, url=url, pictures=pictures)
    if form == "csv":
        return sheet_csv(sheet)
    drawn = {plot.name: png(render_to_string("plots/plot.svg", {"plot": plot})) for plot in sheet.plots}
    return sheet_pdf(sheet, url=url, pictures=drawn)
