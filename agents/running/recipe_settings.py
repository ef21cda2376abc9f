"""What the server has from the recipe that no server's own look at itself tells: its environment, and whole files."""

from __future__ import annotations

import hashlib

from agents.base.session import Session
from agents.record import Record
from agents.running.preparation import launch_of
from agents.running.tuning import host_steps
from agents.servers.base.process import ENVIRONMENT
from agents.spec import Part
from agents.steps.base.remote_file import decode_content
from agents.steps.base.step import StepContext
from agents.steps.file import FileStep
from agents.steps.properties import PropertiesStep

FILES = "files."
MAX_RECORDED_BYTES = 64 << 10
"""A larger file is recorded by its size and checksum."""


def built_in(part: Part, record: Record) -> dict[str, str]:
    """What the host steps themselves say of what they did, such as the commit that was built."""
    steps = host_steps(part).items()
    applied = [(step, record.applied[index]) for index, step in steps if index in record.applied]
    return {name: value for step, one in applied for name, value in step.settings(one.effective).items()}


def kept_by_steps(part: Part) -> tuple[str, ...]:
    """Files of the instance that the recipe's steps leave for the run."""
    return tuple(dict.fromkeys(name for step in host_steps(part).values() for name in step.keeps))


def environment_of(part: Part) -> dict[str, str]:
    """The variables that the recipe starts the server with, as settings.

    nginx and PostgreSQL write their titles over what /proc shows of their environment, so that does not tell them.
    """
    return {f"{ENVIRONMENT}{name}": value for name, value in launch_of(part).environment.items()}


async def files_of(session: Session, part: Part, instance: str) -> dict[str, str]:
    """The files that the recipe writes or edits, as they are on the host now: `files.PATH` -> text.

    AgentError when one of them cannot be read.
    """
    found: dict[str, str] = {}
    for step in part.steps:
        if isinstance(step, FileStep | PropertiesStep) and f"{FILES}{step.path}" not in found:
            result = await session.run(step.probe(StepContext(instance)), max_output_bytes=4 << 20)
            content = step.parse(result.check(f"Reading {step.path}").stdout).get("content")
            if content is not None:
                found[f"{FILES}{step.path}"] = _recorded(decode_content(content))
    return found


def _recorded(data: bytes) -> str:
    try:
        if len(data) <= MAX_RECORDED_BYTES:
            return data.decode()
    except UnicodeDecodeError:
        pass
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"
