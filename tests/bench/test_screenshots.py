"""Every page has its picture in the documentation, or a reason why not."""

from __future__ import annotations

from bench.screenshot_pages import NO_PICTURE, PAGES
from bench.screenshots import document, page_patterns


def test_every_page_has_an_entry_and_every_entry_is_a_page() -> None:
    entries = [*PAGES, *NO_PICTURE]

    assert sorted(page_patterns().keys() - set(entries)) == [], "lacks a line in bench/screenshot_pages.py"
    assert sorted(entries) == sorted(page_patterns()), (
        "a line in bench/screenshot_pages.py is of no page, or there twice"
    )


def test_the_document_shows_what_was_taken() -> None:
    lines = document({"runs": ["runs.png", "runs-dark.png"]})

    assert f"## {PAGES['runs'].caption}" in lines
    assert [line.partition("](")[2] for line in lines if line.startswith("![")] == [
        "img/pages/runs.png)",
        "img/pages/runs-dark.png)",
    ]
