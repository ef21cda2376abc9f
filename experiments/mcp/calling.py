"""One call of a tool: who may call it, what its arguments are, what it says when it cannot."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone
from pydantic import ValidationError

from agents.base.model import problems_in_words
from experiments.api.plumbing.auth import Caller
from experiments.api.shapes import run_url
from experiments.mcp.asking import Api, Refused
from experiments.mcp.fitting import fitted, shown
from experiments.mcp.tool import Arguments, Tool
from experiments.mcp.tools import LAUNCHING, READING

logger = logging.getLogger(__name__)

_MOST_CITED = 12
_MOST_ERRORS = 5


@dataclass(frozen=True)
class Said:
    """What a call ends with: JSON, or words about what to change."""

    text: str
    is_error: bool = False


def tools_for(caller: Caller) -> tuple[Tool, ...]:
    """The tools that this caller may call: what starts something only with its scope, and where it is switched on."""
    scopes = caller.scopes or frozenset()
    on = bool(settings.BENCHHUB_MCP_LAUNCH)
    return tuple(one for one in (*READING, *LAUNCHING) if one.scope in scopes and (on or not one.starts))


async def call(tool: Tool, api: Api, given: dict[str, object]) -> Said:
    """What the tool answers; an error is said in words that name what to change, as the API says it."""
    try:
        return Said(await _answer(tool, api, tool.arguments.model_validate(given)))
    except ValidationError as error:
        return Said(_words(tool, error), is_error=True)
    except Refused as refused:
        return Said(str(shown(str(refused))), is_error=True)
    except Exception:
        logger.exception("the tool %s failed", tool.name)
        return Said("BenchHub failed to answer; the server's log says why.", is_error=True)


async def _answer(tool: Tool, api: Api, arguments: Arguments) -> str:
    answer = await tool.answer(api, arguments)
    cited = [*dict.fromkeys(number for number in answer.runs if number)][:_MOST_CITED]
    content = {**answer.content, "now": timezone.now().isoformat(timespec="seconds")}
    if cited:
        content["cite"] = {f"#{number}": run_url(api.team, number) for number in cited}
    return fitted(content)


def _words(tool: Tool, error: ValidationError) -> str:
    found = [
        f"{'.'.join(map(str, place))[:200]}: {problem}" if place else problem
        for place, problem in problems_in_words(error)[:_MOST_ERRORS]
    ]
    return str(shown(f"{' '.join(found)} The arguments of {tool.name} are: {', '.join(tool.arguments.model_fields)}."))
