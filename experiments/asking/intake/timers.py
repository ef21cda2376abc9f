"""Tables of timers of a run: imported as text, kept as an artifact and as rows."""

from __future__ import annotations

from dataclasses import asdict

from django.db import IntegrityError, transaction

from agents.base.errors import ParseError
from agents.results.timer_tables import read_timer_table
from experiments.models import Member, Role, Run, TimerTable
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.runs.artifacts import keep
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

MOST_TABLES = 20
MAX_NAME = 60


def import_timers(member: Member, run: Run, *, name: str, text: str) -> TimerTable:
    """Store the table beside the run's figures. RequestError says what cannot be read (field `text` or `name`)."""
    require(member, Role.LAUNCHER)
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or "/" in name:
        raise RequestError(f"A name has 1 to {MAX_NAME} printable characters and no slash.", field="name")
    try:
        rows = read_timer_table(text)
    except ParseError as error:
        line = f" (line {error.line})" if error.line is not None else ""
        raise RequestError(
            f"{error.message[0].upper()}{error.message[1:]}{line}. {error.hint}", field="text"
        ) from error
    if run.timer_tables.count() >= MOST_TABLES:
        raise RequestError(f"A run has at most {MOST_TABLES} tables of timers.", field="name")
    try:
        with transaction.atomic():
            table = TimerTable.objects.create(run=run, name=name, rows=[asdict(row) for row in rows])
            keep(run, f"timers-{name}.txt", text.encode())
            audit.record(member, "run.timers", f"run #{run.number}", after={"name": name, "rows": len(rows)})
    except IntegrityError as error:
        raise Conflict(f"Run #{run.number} has a table of timers named {name!r} already.", field="name") from error
    return table
