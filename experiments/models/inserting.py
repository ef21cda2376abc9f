"""Stores new objects by a statement whose text does not depend on them: for what comes by the hundred in a second."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Model
from pydantic_core import to_json

from experiments.models.prepared import execute


def insert(objects: Sequence[Model]) -> None:
    """Store new objects of one model, in their order, and give them their keys; signals are not sent.

    Django words a statement anew each time, which takes it longer than PostgreSQL needs to do what it says.
    """
    if not objects:
        return
    model = type(objects[0])
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    rows = [{field.column: _as_json(field.pre_save(one, add=True)) for field in fields} for one in objects]
    for one, (pk,) in zip(objects, execute(_statement(model), [to_json(rows).decode()]), strict=True):
        one.pk = pk
        one._state.adding, one._state.db = False, connection.alias


@functools.cache
def _statement(model: type[Model]) -> str:
    table, key = model._meta.db_table, model._meta.pk.column
    columns = ", ".join(f'"{field.column}"' for field in model._meta.concrete_fields if not field.primary_key)
    return (  # names of tables and columns only
        f'INSERT INTO "{table}" ({columns}) SELECT {columns} '  # noqa: S608
        f'FROM json_populate_recordset(NULL::"{table}", %s::json) RETURNING "{key}"'
    )


def _as_json(value: Any) -> Any:
    """As PostgreSQL reads it from JSON: bytes in hexadecimal, all else as pydantic writes it."""
    return rf"\x{value.hex()}" if isinstance(value, bytes) else value
