"""`/mcp`: a token of the API, one POST, one answer in JSON."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from ninja.errors import HttpError

from experiments.api import api
from experiments.api.plumbing.auth import Caller, TokenAuth
from experiments.api.plumbing.limits import tell_budget
from experiments.api.plumbing.problems import problem
from experiments.mcp.asking import Api

_TOKEN = TokenAuth("read")


@csrf_exempt
async def mcp(request: HttpRequest) -> HttpResponseBase:
    """What the protocol says to a caller with the scope `read`; without one the API's own words.

    A session of the browser is no caller here, so that no other page can ask in its name.
    """
    if request.method != "POST":
        refused = problem(405, "Send each message by POST; there are no sessions and no streams here.")
        refused["Allow"] = "POST"
        return refused
    try:
        caller = await sync_to_async(_caller)(request)
        answer = await _answered(request, caller)
    except Exception as error:
        answer = api.on_exception(request, error)
    tell_budget(request, answer)
    return answer


def _caller(request: HttpRequest) -> Caller:
    found = _TOKEN(request)
    if not isinstance(found, Caller):
        raise HttpError(401, "Unauthorized")
    return found


async def _answered(request: HttpRequest, caller: Caller) -> HttpResponse:
    from experiments.mcp.protocol import answer  # with the SDK, which takes a second to load

    return await answer(request, Api(request, caller))
