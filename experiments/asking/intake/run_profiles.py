"""Profiles that somebody sends of a run: who took them says how, the run says what it cost."""

from __future__ import annotations

import base64
import binascii

from agents.profiles.base.taken import TakenProfile
from agents.spec import RunSpec
from experiments.models import Member, Role, Run, RunProfile
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.runs.run_profiles import SUT, store_run_profile
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.registry.teams.quotas import admit_files

MAX_SENT_BYTES = 7_000_000
MAX_SENT_CHARS = 4 * (MAX_SENT_BYTES + 2) // 3


def import_profile(member: Member, run: Run, *, content: str, taken: TakenProfile) -> RunProfile:
    """Store a profile of the run; `content` is its file in base64. RequestError names what is wrong with it."""
    require(member, Role.LAUNCHER)
    if run.is_live:
        raise Conflict(f"Run #{run.number} still runs: a profile is added to one that has ended.")
    if taken.role not in ("", SUT) and taken.role not in _members_of(run):
        raise RequestError(f"Run #{run.number} has no part {taken.role}.", field="role")
    admit_files(member.team)
    stored = store_run_profile(run, _file(content), taken)
    after = {"name": stored.name, "stacks": stored.stacks, "samples": stored.samples}
    audit.record(member, "run.profile", f"run #{run.number}", after=after)
    return stored


def _file(content: str) -> bytes:
    if len(content) > MAX_SENT_CHARS:
        raise RequestError(
            f"A profile has at most {MAX_SENT_BYTES:,} bytes here. Compress it with gzip, fold it first (collapsed "
            "stacks), or profile for a shorter time.",
            field="content",
        )
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError("The file is sent in base64.", field="content") from error


def _members_of(run: Run) -> set[str]:
    return set(RunSpec.model_validate(run.spec).hosts) if run.spec else set()
