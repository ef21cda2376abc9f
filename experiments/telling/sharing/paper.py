"""A sheet on A4, written by fpdf2 on the server: a script, a mail and every browser get the same file."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import cast

from fpdf import FPDF
from fpdf.enums import TableBordersLayout, XPos, YPos
from fpdf.fonts import FontFace, TTFFont

from experiments.telling.sharing.other_fonts import fonts_for
from experiments.telling.sharing.pictures import BOLD_FONT, FONT, TONES
from experiments.telling.sharing.sheet import Sentences, Sheet, Table

logger = logging.getLogger(__name__)

MARGIN_MM, LINE_MM, FOOT_MM = 16.0, 4.4, 15.0
BODY_PT, TABLE_PT, SMALL_PT = 9.5, 8.0, 7.5
HEADING_PT = (15.0, 11.0)
INK, MUTED, RULE = "#171b22", "#4d5563", "#c9ced6"
MOST_COLUMNS = 11
"""A table with more of them comes in parts, each with the first column."""
MOST_CELL_CHARS, MOST_ROW_CHARS, MOST_HEAD_CHARS = 600, 1500, 60
"""A row does not go over a page's end: what is longer is cut, and stands in the Markdown and the CSV."""
MOST_WORD_MM = 50.0
"""A longer word may be broken; before that, columns with room give some to those without."""
_PAD_MM = 1.2
_WORDS_MM = 30.0
"""What the title and the words of a picture take."""


def sheet_pdf(sheet: Sheet, *, url: str, pictures: Mapping[str, bytes]) -> bytes:
    """See `pdf.sheet_pdf`."""
    pdf = _Paper(f"{sheet.title}, as of {sheet.frozen_at:%Y-%m-%d %H:%M} UTC", url)
    pdf.set_title(sheet.title)
    pdf.set_creator(f"BenchHub {sheet.made_by_version}")
    pdf.set_creation_date(sheet.frozen_at)
    pdf.set_lang("en")
    pdf.take_fonts_for(sheet.model_dump_json())
    pdf.add_page()
    pdf.heading(sheet.title, 0)
    pdf.say(f"As of {sheet.frozen_at:%Y-%m-%d %H:%M} UTC, BenchHub {sheet.made_by_version}", SMALL_PT, MUTED)
    pdf.answer(sheet.sentence, TONES[sheet.tone])
    if sheet.caution:
        pdf.answer(sheet.caution, TONES["warn"])
    for fact in sheet.facts:
        pdf.fact(fact.label, fact.value)
    plots = [plot for plot in sheet.plots if plot.name in pictures]
    sections = list(sheet.sections)
    if plots and pdf.has_room_for(plots[0].height / plots[0].width):
        first = plots.pop(0)
        pdf.picture(pictures[first.name], first.title, first.summary, first.height / first.width)
    if plots or sections:
        pdf.appendix()
    for plot in plots:
        pdf.picture(pictures[plot.name], plot.title, plot.summary, plot.height / plot.width)
    for section in sections:
        pdf.section(section)
    return bytes(pdf.output())


class _Paper(FPDF):
    """A4 with a foot; what is written comes below what was there."""

    def __init__(self, subject: str, url: str) -> None:
        super().__init__(format="A4")
        self._subject, self._url = subject, url
        self.add_font("DejaVu", "", FONT)
        self.add_font("DejaVu", "B", BOLD_FONT)
        self.set_margin(MARGIN_MM)
        self.set_auto_page_break(True, MARGIN_MM + 6)
        self.set_font("DejaVu", "", BODY_PT)

    def take_fonts_for(self, text: str) -> None:
        """Have the machine's own fonts for what DejaVu lacks; without one, such a character is an empty box."""
        families: list[str] = []
        for font in fonts_for({ord(one) for one in text} - cast(TTFFont, self.fonts["dejavu"]).cmap.keys()):
            family = f"other{len(families)}"
            try:
                self.add_font(family, "", font.path, collection_font_number=font.number)
            except Exception:  # whatever is wrong with a file of the machine, the report is made
                logger.exception("the font %s cannot be used", font.path)
            else:
                families.append(family)
        self.set_fallback_fonts(families, exact_match=False)

    def footer(self) -> None:
        self.set_y(-FOOT_MM)
        self.set_font("DejaVu", "", SMALL_PT)
        self.set_text_color(MUTED)
        self.cell(self.epw - 20, LINE_MM, self._url or self._subject, link=self._url)
        self.cell(20, LINE_MM, f"{self.page_no()} / {{nb}}", align="R")

    def heading(self, text: str, level: int) -> None:
        """A title that the reader's list of contents has, too; never alone at the foot of a page."""
        if self.will_page_break(24):
            self.add_page()
        if level:
            self.ln(5)
        self.start_section(text, level)
        self.say(text, HEADING_PT[level], style="B")
        self.ln(1.5)

    def say(self, text: str, size_pt: float = BODY_PT, colour: str = INK, *, style: str = "") -> None:
        self.set_font("DejaVu", style, size_pt)
        self.set_text_color(colour)
        self.multi_cell(0, size_pt * 0.48, text, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def answer(self, text: str, colour: str) -> None:
        """A sentence beside a bar of its colour."""
        self.ln(3)
        top, page = self.get_y(), self.page
        self.set_left_margin(MARGIN_MM + 5)
        self.say(text, 10.5)
        self.set_left_margin(MARGIN_MM)
        self.set_x(MARGIN_MM)
        if self.page == page:
            self.set_fill_color(colour)
            self.rect(MARGIN_MM, top, 1.4, self.get_y() - top, style="F")
            self.set_fill_color("#ffffff")  # the cells of tables would take it, too
        self.ln(1)

    def fact(self, label: str, value: str) -> None:
        if self.will_page_break(LINE_MM * 2):
            self.add_page()
        self.ln(0.8)
        self.set_font("DejaVu", "", SMALL_PT + 0.5)
        self.set_text_color(MUTED)
        self.cell(42, LINE_MM, label)
        self.set_text_color(INK)
        self.multi_cell(0, LINE_MM, value, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def has_room_for(self, shape: float) -> bool:
        """Whether a picture of this shape fits on the page with its title and its words, on the first page only."""
        return self.page_no() == 1 and not self.will_page_break(self.epw * shape + _WORDS_MM)

    def appendix(self) -> None:
        """What the first page rests on begins on the next one."""
        self.add_page()
        self.start_section("Appendix", 0)
        self.say("Appendix", HEADING_PT[0], style="B")
        self.ln(1.5)

    def picture(self, png: bytes, title: str, summary: str, shape: float) -> None:
        """As wide as the paper, its title above and what it shows in words below."""
        high_mm = self.epw * shape
        if self.will_page_break(min(high_mm + 14, self.eph - 1)):
            self.add_page()
        self.ln(4)
        self.say(title, SMALL_PT + 0.5, MUTED)
        self.image(png, w=self.epw, alt_text=summary, title=title)
        self.set_x(self.l_margin)
        self.say(summary, SMALL_PT, MUTED)

    def section(self, section: Table | Sentences) -> None:
        self.heading(section.title, 1)
        if isinstance(section, Sentences):
            for sentence in section.sentences:
                self.say(f"•  {sentence}", BODY_PT - 0.5)
                self.ln(0.8)
            return
        if section.rows:
            self._table(section)
        if section.note:
            self.ln(1)
            self.say(section.note, SMALL_PT, MUTED)

    def _widths(self, rows: Sequence[Sequence[str]]) -> tuple[float, ...]:
        """Of the columns in mm: each has room for its longest word; what is left goes where texts are longer."""
        self.set_font("DejaVu", "B", TABLE_PT)  # the heads are the widest kind of letters
        room = 2 * (_PAD_MM + self.c_margin)
        columns = list(zip(*rows, strict=True))
        words = [min(MOST_WORD_MM, max(map(self.get_string_width, " ".join(one).split() or [""]))) for one in columns]
        longest = [min(self.epw, max(map(self.get_string_width, one))) for one in columns]
        least = [word + room for word in words]
        wanted = [max(text - word, 0.0) for text, word in zip(longest, words, strict=True)]
        share = min(1.0, max(0.0, self.epw - sum(least)) / (sum(wanted) or 1.0))
        return tuple(low + share * more for low, more in zip(least, wanted, strict=True))

    def _table(self, table: Table) -> None:
        for start in range(1, max(len(table.heads), 2), MOST_COLUMNS - 1):
            if start > 1:
                self.ln(3)
            self._columns(table, (0, *range(start, min(start + MOST_COLUMNS - 1, len(table.heads)))))

    def _columns(self, table: Table, shown: Sequence[int]) -> None:
        most_chars = min(MOST_CELL_CHARS, MOST_ROW_CHARS // len(shown))
        rows = [[_short(table.heads[at], min(MOST_HEAD_CHARS, most_chars)) for at in shown]]
        rows += [[_short(row[at], most_chars) for at in shown] for row in table.rows]
        aligned = tuple("LEFT" if at < table.numbers_from else "RIGHT" for at in shown)
        widths = self._widths(rows)
        self.set_font("DejaVu", "", TABLE_PT)
        self.set_text_color(INK)
        self.set_draw_color(RULE)
        with self.table(
            rows,
            col_widths=widths,
            text_align=aligned,
            line_height=LINE_MM,
            padding=(0.8, _PAD_MM),
            v_align="TOP",
            borders_layout=TableBordersLayout.HORIZONTAL_LINES,
            headings_style=FontFace(emphasis="BOLD", color=INK),
        ):
            pass


def _short(text: str, most_chars: int) -> str:
    return text if len(text) <= most_chars else f"{text[: most_chars - 1]}…"
