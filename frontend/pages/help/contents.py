"""The documentation inside the product: the files of `docs/` as HTML, with links that stay in the product.

Raw HTML in a file is shown as text, links to other schemes than http(s) are none: markdown-it's own rules see to that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import normpath

from markdown_it import MarkdownIt
from markdown_it.token import Token

from experiments.telling.find.documentation import INDEX, anchor, file_of, files, page_text

_PAGE = re.compile(r"([A-Za-z0-9./-]+\.md)(#[a-z0-9_-]*)?")


@dataclass(frozen=True)
class HelpPage:
    """One file of the documentation: its title, its HTML, and its headings of the second level (anchor, text)."""

    title: str
    html: str
    headings: tuple[tuple[str, str], ...]


@cache
def help_page(topic: str) -> HelpPage:
    """The page of a topic, or the index. KeyError when there is none."""
    return render(page_text(topic), file_of(topic))


def render(text: str, file: str) -> HelpPage:
    """Markdown as HTML. Pictures and links to files outside the documentation are left out, their text stays.

    `file` is the path of the text below `docs/`: its links are relative to it.
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    headings: list[tuple[str, str]] = []
    title = ""
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        words = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
        opening.attrSet("id", anchor(words))
        if opening.tag == "h1":
            title = title or words
        elif opening.tag == "h2":
            headings.append((anchor(words), words))
    for token in tokens:
        if token.attrs.pop("style", "") == "text-align:right":  # the security policy lets no style stand in a page
            token.attrSet("class", "num")
        if token.children is not None:
            token.children = _inside(token.children, file)
    return HelpPage(title, markdown.renderer.render(tokens, markdown.options, {}), tuple(headings))


def _inside(tokens: Sequence[Token], file: str) -> list[Token]:
    """The tokens of a line, with links to pages turned into links here and other relative ones into their text."""
    up = "" if files().get(file) == INDEX else "../"
    kept: list[Token] = []
    dropped = 0
    for token in tokens:
        if token.type == "image":
            continue
        if token.type == "link_open":
            to = str(token.attrGet("href") or "")
            page = _PAGE.fullmatch(to)
            if page and (topic := files().get(normpath(PurePosixPath(file).parent / page[1]))):
                token.attrSet("href", f"{up}{'' if topic == INDEX else f'{topic}/'}{page[2] or ''}" or "./")
            elif not to.startswith(("#", "http://", "https://")):
                dropped += 1
                continue
        if token.type == "link_close" and dropped:
            dropped -= 1
            continue
        kept.append(token)
    return kept
