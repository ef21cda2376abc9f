"""What each of several driver hosts does of the load that a workload asks for. What cannot be divided is refused."""

from __future__ import annotations

from pydantic import ValidationError

from agents.base.errors import PlanError
from agents.base.model import first_problem
from agents.drivers.base.driver import AnyTool, Driver


def share_of(tool: AnyTool, hosts: int) -> AnyTool:
    """The tool as each of so many driver hosts runs it. PlanError when the load cannot be divided into equal parts."""
    if hosts == 1:
        return tool
    whole = _divided(tool)
    if not whole:
        raise PlanError(
            f"the load of {tool.kind} cannot be divided over {hosts} driver hosts: {tool.why_indivisible()}"
        )
    for name, value in whole.items():
        if isinstance(value, int) and value % hosts:
            what = f"{value:,} {tool.divided[name]}"
            raise PlanError(f"{what} cannot be divided evenly over {hosts} driver hosts; give a multiple of {hosts}")
    shares = {name: value // hosts if isinstance(value, int) else value / hosts for name, value in whole.items()}
    try:
        return type(tool).model_validate({**tool.model_dump(by_alias=True), **shares})
    except ValidationError as error:
        problem = first_problem(error)[1]
        raise PlanError(
            f"{tool.kind} cannot run with its share of the load on {hosts} driver hosts: {problem}"
        ) from error


def share_words(tool: Driver, hosts: int) -> str:
    """The share in words: "16 of 32 connections, 250 of 500 requests/s". PlanError as for `share_of`."""
    part, whole = _divided(share_of(tool, hosts)), _divided(tool)
    return ", ".join(f"{part[name]:,} of {value:,} {tool.divided[name]}" for name, value in whole.items())


def _divided(tool: Driver) -> dict[str, int | float]:
    """The options that make up the load, as far as they are given; none when something else decides it."""
    if tool.why_indivisible():
        return {}
    values = {name: getattr(tool, name) for name in tool.divided}
    return {name: value for name, value in values.items() if value is not None}
