"""Templates and scripts have lines that can be read; what their formatters cannot break is broken by hand."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

LONGEST = 160
KINDS = {".html", ".js"}


def test_no_line_of_a_template_or_script_is_longer_than_a_reader_takes_in() -> None:
    sources: list[Path] = [
        path
        for package in ("frontend", "experiments")
        for path in (settings.BASE_DIR / package).rglob("*")
        if path.suffix in KINDS and "vendor" not in path.parts
    ]
    long = [
        f"{path.relative_to(settings.BASE_DIR)}:{number} has {len(line)} characters"
        for path in sorted(sources)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST
    ]

    assert len(sources) > 100
    assert long == []
