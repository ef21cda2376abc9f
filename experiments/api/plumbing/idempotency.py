"""`Idempotency-Key`: the same key and body get the same answer, however often and however concurrently they come."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from django.db import transaction
from django.http import HttpRequest
from ninja.params.functions import Header
from ninja.responses import Status
from ninja.utils import contribute_operation_args
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from experiments.api.plumbing.auth import member_of
from experiments.models import IdempotencyRecord
from experiments.registry.errors import RequestError

MAX_KEY_CHARS = 255
KEY_SAID = (
    "A text of your own for this request. The same key with the same body gets the same answer, with "
    "`Idempotency-Replayed: true`, and starts nothing twice; with another body it is a 422"
)
_IN_PROGRESS = 0

P = ParamSpec("P")
T = TypeVar("T", bound=BaseModel | list[Any])


def idempotent(
    operation: Callable[Concatenate[HttpRequest, P], Status[T]],
) -> Callable[Concatenate[HttpRequest, P], Status[T]]:
    """Make an operation that starts something repeatable. Only answers are stored: an error leaves the key free.

    The record is inserted first, in the operation's own transaction, so its unique key is the lock: a concurrent
    duplicate waits there until the first one is committed, and then finds its answer.
    """

    @wraps(operation)
    def repeatable(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> Status[T]:
        key = kwargs.pop("idempotency_key", None)
        if not key:
            return operation(request, *args, **kwargs)
        text = str(key)
        if len(text) > MAX_KEY_CHARS or not text.isascii() or not text.isprintable():
            raise RequestError(
                f"An Idempotency-Key has at most {MAX_KEY_CHARS} printable ASCII characters.", field="Idempotency-Key"
            )
        member = member_of(request)
        digest = _digest(request, member.pk)
        with transaction.atomic():
            record = _claimed(member.team_id, text, digest)
            if record.status != _IN_PROGRESS:
                if record.request_sha256 != digest:
                    raise RequestError("This key was used for another request.", field="Idempotency-Key")
                request.benchhub_replayed = True  # type: ignore[attr-defined]
                return Status(record.status, cast(T, record.body))  # ninja checks it against the answer's shape
            answer = operation(request, *args, **kwargs)
            body = to_jsonable_python(answer.value)
            IdempotencyRecord.objects.filter(pk=record.pk).update(status=answer.status_code, body=body)
        return answer

    # Resolved here: ninja would look the names up in this module.
    repeatable.__signature__ = inspect.signature(operation, eval_str=True)  # type: ignore[attr-defined]
    header = Header(None, alias="Idempotency-Key", description=KEY_SAID)
    contribute_operation_args(repeatable, "idempotency_key", str | None, header)  # type: ignore[arg-type]
    return cast(Callable[Concatenate[HttpRequest, P], Status[T]], repeatable)


def _claimed(team_id: int, key: str, digest: str) -> IdempotencyRecord:
    """The key's record. One in progress is this request's own: another's is waited for until it is done or undone."""
    new = IdempotencyRecord(team_id=team_id, key=key, request_sha256=digest, status=_IN_PROGRESS, body={})
    IdempotencyRecord.objects.bulk_create([new], ignore_conflicts=True)
    return IdempotencyRecord.objects.get(team_id=team_id, key=key)


def _digest(request: HttpRequest, member_id: int) -> str:
    whole = hashlib.sha256(f"{request.method} {request.get_full_path()} {member_id}\n".encode())
    whole.update(request.body)
    return whole.hexdigest()
