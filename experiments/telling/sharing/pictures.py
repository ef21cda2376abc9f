"""Pictures of a sheet for places without a login: a badge, a plot with its words, as SVG and as PNG."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

import resvg_py

from experiments.telling.reports.plots import Plot
from experiments.telling.sharing.sheet import Sheet

FONT = Path(__file__).parent / "fonts" / "DejaVuSans.ttf"
"""Drawn with the same letters everywhere, also on a server that has no fonts."""
BOLD_FONT = FONT.with_name("DejaVuSans-Bold.ttf")
WIDTH, MARGIN = 720.0, 20.0
TITLE_CHARS, TEXT_CHARS, MOST_LINES = 64, 96, 3
TITLE_LINE, TEXT_LINE = 24.0, 17.0
ZOOM = 2
_CHAR_WIDTH, _PAD = 6.6, 8.0
TONES = {"good": "#006549", "bad": "#a83c00", "warn": "#7d5200", "neutral": "#4d5563"}


@dataclass(frozen=True)
class TextLine:
    text: str
    y: float


@dataclass(frozen=True)
class Picture:
    """A plot below its title and the answer; it begins at `plot_y`. `plot` is None when there is nothing to draw."""

    title: tuple[TextLine, ...]
    sentence: tuple[TextLine, ...]
    caption: tuple[TextLine, ...]
    colour: str
    plot: Plot | None
    plot_y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True)
class Badge:
    """Two halves; `*_width` of each, `*_x` the middle of its text."""

    label: str
    value: str
    label_width: float
    value_width: float
    colour: str

    @property
    def width(self) -> float:
        return self.label_width + self.value_width

    @property
    def label_text_width(self) -> float:
        return self.label_width - 2 * _PAD

    @property
    def value_text_width(self) -> float:
        return self.value_width - 2 * _PAD

    @property
    def label_x(self) -> float:
        return self.label_width / 2

    @property
    def value_x(self) -> float:
        return self.label_width + self.value_width / 2


def picture_of(sheet: Sheet, plot: Plot | None) -> Picture:
    """The sheet's title and answer, and one of its plots."""
    y = MARGIN / 2
    title, y = _lines(sheet.title, TITLE_CHARS, y, TITLE_LINE)
    sentence, y = _lines(sheet.sentence, TEXT_CHARS, y + 2, TEXT_LINE)
    caption, y = _lines(plot.title, TEXT_CHARS, y + 8, TEXT_LINE) if plot else ((), y)
    height = y + 8 + (plot.height if plot else 0.0) + MARGIN / 2
    text = f"{sheet.title}. {sheet.sentence}"
    return Picture(title, sentence, caption, TONES[sheet.tone], plot, y + 8, WIDTH, height, text)


def badge_of(sheet: Sheet) -> Badge:
    """The widths are those of DejaVu Sans at 11 px, roughly; the SVG stretches its text to them."""
    widths = [round(len(text) * _CHAR_WIDTH + 2 * _PAD, 1) for text in (sheet.badge_label, sheet.badge_value)]
    return Badge(sheet.badge_label, sheet.badge_value, widths[0], widths[1], TONES[sheet.tone])


def plot_named(sheet: Sheet, name: str) -> Plot | None:
    return next((plot for plot in sheet.plots if plot.name == name), None)


def png(svg: str) -> bytes:
    """The SVG as PNG at twice its size, for screens with fine pixels."""
    return resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=ZOOM,
        skip_system_fonts=True,
        font_files=[str(FONT)],
        font_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
    )


def _lines(text: str, chars: int, y: float, step: float) -> tuple[tuple[TextLine, ...], float]:
    """The text in at most three lines below `y`, and where they end."""
    wrapped = textwrap.wrap(text, chars, max_lines=MOST_LINES, placeholder=" …")
    return tuple(TextLine(line, y + step * (index + 1)) for index, line in enumerate(wrapped)), y + step * len(wrapped)
