"""The servers under test. A new one is a file or folder here, its name in `AnyServer`, cases, a row in the guide."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.base.model import kinds_of
from agents.servers.base.server import Server
from agents.servers.command import CommandServer
from agents.servers.haproxy.server import HAProxy
from agents.servers.jar import Jar
from agents.servers.liberty.server import Liberty
from agents.servers.nginx.server import Nginx
from agents.servers.node import Node
from agents.servers.postgresql.server import PostgreSQL
from agents.servers.python import Python
from agents.servers.redis.server import Redis
from agents.servers.tomcat.server import Tomcat

AnyServer = Annotated[
    CommandServer | HAProxy | Jar | Liberty | Nginx | Node | PostgreSQL | Python | Redis | Tomcat,
    Field(discriminator="kind"),
]

SERVERS: dict[str, type[Server]] = kinds_of(AnyServer)
