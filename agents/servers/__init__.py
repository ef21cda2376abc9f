"""The registry of servers under test: a new one is a file in this package and a line in each of the two tables here."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.servers.base.server import Server
from agents.servers.command import CommandServer
from agents.servers.liberty.server import Liberty
from agents.servers.tomcat.server import Tomcat

AnyServer = Annotated[CommandServer | Liberty | Tomcat, Field(discriminator="kind")]

SERVERS: dict[str, type[Server]] = {
    "command": CommandServer,
    "liberty": Liberty,
    "tomcat": Tomcat,
}
