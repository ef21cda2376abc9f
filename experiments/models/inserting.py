"""Stores new objects by a statement whose text does not depend on them: for what comes by the hundred in a second."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Model


def insert(objects: Sequence[Model]) -> None:
    """Store new objects of one model, in their order, and give them their keys; signals are not sent.

    Django words a statement anew each time, which takes it longer than PostgreSQL needs to do what it says.
    """
    if not objects:
        return
    model = type(objects[0])
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    rows = [{field.column: field.pre_save(one, add=True) for field in fields} for one in objects]
    with connection.cursor() as cursor:
        cursor.execute(_statement(model), [json.dumps(rows, default=_as_text)])
        for one, (pk,) in zip(objects, cursor.fetchall(), strict=True):
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


def _as_text(value: Any) -> str:
    """As PostgreSQL reads it from text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return rf"\x{value.hex()}"
    raise TypeError(f"{type(value).__name__} cannot be inserted this way.")
