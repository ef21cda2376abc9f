"""Characters that the report's own font lacks come from a font of the machine, found through fontconfig."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder  # type: ignore[import-untyped]
from fontTools.ttLib.tables._g_l_y_f import Glyph  # type: ignore[import-untyped]

from experiments.telling.sharing.other_fonts import _font_with, fonts_for
from experiments.telling.sharing.pdf import sheet_pdf
from experiments.telling.sharing.sheet import Sheet
from tests import needs

HAS, LACKS = "压", "测"
SETTINGS = "<fontconfig><dir>{folder}</dir><cachedir>{folder}/cache</cachedir></fontconfig>"


@pytest.fixture
def one_font(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine whose only font has one Chinese character."""
    needs.require_program("fc-match")
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder([".notdef", "one"])
    font.setupCharacterMap({ord(HAS): "one"})
    font.setupGlyf({".notdef": Glyph(), "one": Glyph()})
    font.setupHorizontalMetrics({".notdef": (500, 0), "one": (1000, 0)})
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "Lonely", "styleName": "Regular", "psName": "Lonely"})
    font.setupOS2()
    font.setupPost()
    path = tmp_path / "lonely.ttf"
    font.save(path)
    settings = tmp_path / "fonts.conf"
    settings.write_text(SETTINGS.format(folder=tmp_path))
    monkeypatch.setenv("FONTCONFIG_FILE", str(settings))
    _font_with.cache_clear()
    yield path
    _font_with.cache_clear()


def test_a_font_of_the_machine_is_taken_for_what_it_has_and_nothing_else(one_font: Path) -> None:
    assert [font.path for font in fonts_for({ord(HAS), ord(LACKS)})] == [one_font]
    assert fonts_for({ord(LACKS)}) == []


def test_a_report_with_such_a_character_carries_that_font(one_font: Path) -> None:
    def paper(title: str) -> bytes:
        sheet = Sheet(
            title=title,
            sentence="Fine.",
            badge_label="run",
            badge_value="fine",
            frozen_at=datetime(2026, 1, 1, tzinfo=UTC),
            made_by_version="1",
        )
        return sheet_pdf(sheet, url="", pictures={})

    assert b"Lonely" in paper(HAS)
    assert b"Lonely" not in paper("a")
    assert paper(LACKS).startswith(b"%PDF-")


def test_on_a_machine_without_any_font_there_is_no_other_font(one_font: Path) -> None:
    one_font.unlink()
    assert fonts_for({ord(HAS)}) == []


def test_without_fontconfig_there_is_no_other_font(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    _font_with.cache_clear()
    assert fonts_for({ord(HAS)}) == []
    _font_with.cache_clear()
