"""All tools, in the order in which a client lists them."""

from __future__ import annotations

from experiments.mcp.tool import Tool
from experiments.mcp.tools import comparing, documentation, histories, lab, launching, logs, runs

READING: tuple[Tool, ...] = (
    *runs.TOOLS,
    *logs.TOOLS,
    *comparing.TOOLS,
    *histories.TOOLS,
    *lab.TOOLS,
    *documentation.TOOLS,
)
LAUNCHING: tuple[Tool, ...] = launching.TOOLS
"""Listed and answered only with the scope `launch` and where the operator switched them on."""
