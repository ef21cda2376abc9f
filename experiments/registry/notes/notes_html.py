"""Notes as HTML: Markdown without raw HTML and without pictures; links tell search engines and targets nothing."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

LINKS = ("http://", "https://", "mailto:", "/", "#")


def notes_html(text: str) -> str:
    """Safe to put into a page: what is no Markdown stays text, and no other scheme becomes a link."""
    return str(_MARKDOWN.render(text))


def _link_open(renderer: RendererHTML, tokens: list[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    tokens[at].attrSet("rel", "nofollow noopener noreferrer")
    return renderer.renderToken(tokens, at, options, env)


def _cell_open(renderer: RendererHTML, tokens: list[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    if tokens[at].attrs.pop("style", "") == "text-align:right":  # the security policy lets no style stand in a page
        tokens[at].attrSet("class", "num")
    return renderer.renderToken(tokens, at, options, env)


def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable("image")
    made.add_render_rule("link_open", _link_open)
    for cell in ("th_open", "td_open"):
        made.add_render_rule(cell, _cell_open)
    made.validateLink = lambda url: url.strip().lower().startswith(LINKS)  # type: ignore[method-assign]
    return made


_MARKDOWN = _markdown()
