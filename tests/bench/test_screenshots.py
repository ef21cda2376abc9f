"""Every page has its picture in the documentation, or a reason why not."""

from __future__ import annotations

from bench.screenshot_pages import NO_PICTURE, PAGES
from bench.screenshots import document, page_patterns


def test_every_page_has_an_entry_and_every_entry_is_a_page() -> None:
    assert sorted(page_patterns()) == sorted([*PAGES, *NO_PICTURE])


def test_the_document_shows_what_was_taken() -> None:
    lines = document({"runs": ["runs.png", "runs-dark.png"]})

    assert f"## {PAGES['runs'].caption}" in lines
    assert [line.partition("](")[2] for line in lines if line.startswith("![")] == [
        "img/pages/runs.png)",
        "img/pages/runs-dark.png)",
    ]
