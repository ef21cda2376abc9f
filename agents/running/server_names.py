"""What the servers of a run are called among its jobs and files."""

from __future__ import annotations

from agents.events import Role
from agents.system import LOADED


def server_job(role: Role, number: int) -> str:
    """The job of the instance with this number, counted from 0, of the server with this role: `server-database-2`."""
    own = "server" if role == LOADED else f"server-{role}"
    return f"{own}-{number + 1}" if number else own
