"""The documentation of this installation, by topic, section and words."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from pydantic import Field

from experiments.mcp.asking import Api, Refused
from experiments.mcp.fitting import pieces
from experiments.mcp.tool import Answer, Arguments, Tool
from experiments.telling.find.documentation import page_text, search, sections_of, title_of, topics

_MOST_HITS = 12


class GetDocs(Arguments):
    search: str = Field("", max_length=200, description="Words that a section has to have")
    topic: str = Field("", max_length=60, description="One page: its sections; with `section` the text of it")
    section: str = Field("", max_length=200, description="Anchor of a section")


async def get_docs(_api: Api, asked: GetDocs) -> Answer:
    """Topics, sections or text, by what was given."""
    return Answer(await sync_to_async(_found)(asked))


def _found(asked: GetDocs) -> dict[str, Any]:
    if asked.search:
        hits = search(asked.search)[:_MOST_HITS]
        return {"found": [{"topic": one.topic, "section": one.anchor, "text": one.excerpt} for one in hits]}
    if not asked.topic:
        return {"topics": {topic: title_of(topic) for topic in sorted(topics())}}
    if asked.topic not in topics():
        raise Refused(f"There is no topic {asked.topic!r} (field: topic); without any argument you get all.", 404)
    sections = sections_of(page_text(asked.topic))
    if not asked.section:
        first = next((text for anchor, _, text in sections if not anchor), "")
        headings = {anchor: heading for anchor, heading, _ in sections if anchor}
        return {"title": title_of(asked.topic), "text": first, "sections": headings}
    for anchor, heading, text in sections:
        if anchor == asked.section:
            return {"topic": asked.topic, "heading": heading, "text": pieces(text)}
    raise Refused(f"The page {asked.topic} has no section {asked.section!r} (field: section).", 404)


TOOLS = (
    Tool(
        "get_docs",
        "Documentation",
        "BenchHub's own documentation: search it, list its topics, read a page's sections. What a verdict, a finding "
        "or a figure means is there.",
        GetDocs,
        get_docs,
    ),
)
