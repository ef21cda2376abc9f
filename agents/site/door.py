"""Asks the centre over HTTPS. What goes wrong is one of three: it is away, somebody newer has the run, or a mistake."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from pydantic import BaseModel, ValidationError

from agents.base.errors import FenceError, KeepError, MistakeError, ParseError
from agents.site.wire import DAMAGED, OLD_FENCE
from agents.working.store import StoreAway

logger = logging.getLogger(__name__)

ANSWER_TIMEOUT_S = 30.0
FILE_TIMEOUT_S = 600.0
CONNECT_TIMEOUT_S = 10.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0
PROBLEM = "application/problem+json"
_REFUSED = frozenset((401, 403))
_PASSING = frozenset((400, 408, 425, 429))
"""What the centre says of a request that did not arrive whole, or too soon: the same once more may be taken."""

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class StoreLost(Exception):
    """The centre was away for longer than the patience: the run is left as it is, and whoever has it next goes on."""


class Refused(StoreAway):
    """The token is not accepted. Another one may be put into place while hosts wait to be put back."""


class RequestTooLarge(StoreAway):
    """A proxy before the centre takes no request of this size: the same one again is as large."""


class NotOurs(FenceError):
    """The centre itself says that the run is not this worker's any more; it need not be told so."""


class Door:
    """The centre's door for one site. May be used by several threads."""

    def __init__(self, url: str, read_token: Callable[[], str], *, agent: str) -> None:
        """`read_token` is asked again when the centre refuses the token: another one may be in its place by then."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"--url: give the address of BenchHub, https://..., not {url!r}")
        if parts.scheme == "http" and not _is_this_machine(parts.hostname):
            raise ValueError("--url: the token is only sent over https://; plain http:// is for this machine itself")
        self._base = url.rstrip("/") + "/api/v1/site"
        self._session = requests.Session()
        adapter = requests.adapters.HTTPAdapter(pool_maxsize=256)
        self._session.mount("https://", adapter)
        self._session.mount("http://", adapter)
        self._session.headers["User-Agent"] = agent
        self._read_token = read_token
        self._token = read_token()

    def ask(
        self,
        shape: type[M],
        method: str,
        path: str,
        body: BaseModel | None = None,
        *,
        query: Mapping[str, str] | None = None,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> M:
        """One request and its answer. StoreAway, NotOurs, or MistakeError for what nobody foresaw."""
        data = b"" if body is None else body.model_dump_json().encode()
        return self._read(shape, self._send(method, path, data, "application/json", query or {}, timeout_s))

    def send(self, shape: type[M], method: str, path: str, content: bytes | Path, *, query: Mapping[str, str]) -> M:
        """The same with a body of bytes; what a path holds is read in pieces."""
        kind = "application/octet-stream"
        if isinstance(content, bytes):
            return self._read(shape, self._send(method, path, content, kind, query, FILE_TIMEOUT_S))
        with content.open("rb") as source:
            return self._read(shape, self._send(method, path, source, kind, query, FILE_TIMEOUT_S))

    def _send(
        self, method: str, path: str, data: Any, kind: str, query: Mapping[str, str], timeout_s: float
    ) -> requests.Response:
        """With the token; once more with the one that has taken its place, when it is refused."""

        def once(token: str) -> requests.Response:
            try:
                return self._session.request(
                    method,
                    self._base + path,
                    params=dict(query),
                    data=data,
                    headers={"Content-Type": kind},
                    auth=_with_token(token),
                    timeout=(CONNECT_TIMEOUT_S, timeout_s),
                    allow_redirects=False,
                )
            except requests.RequestException as error:
                raise StoreAway(f"no answer of {self._base}: {error}") from error

        token = self._token
        answer = once(token)
        if answer.status_code not in _REFUSED or (renewed := self._renewed(token)) == token:
            return answer
        if not isinstance(data, bytes):
            data.seek(0)
        return once(renewed)

    def _renewed(self, refused: str) -> str:
        """The token to use from now on: what is in its place by now, else the one that was refused."""
        try:
            self._token = self._read_token() or refused
        except (OSError, ValueError) as error:
            logger.warning("the token cannot be read again: %s", error)
        return self._token

    def _read(self, shape: type[M], answer: requests.Response) -> M:
        if answer.status_code == requests.codes.ok:
            try:
                return shape.model_validate_json(answer.content)
            except ValidationError as error:
                raise StoreAway(f"{self._base} answers what is not BenchHub's: {str(error)[:300]}") from error
        status = answer.status_code
        problem = _problem(answer)
        if problem is None:
            away = RequestTooLarge if status == requests.codes.request_entity_too_large else StoreAway
            said = " ".join(answer.text.split())[:200] or answer.reason
            raise away(f"{self._base} answers HTTP {status}, but not from BenchHub: {said}")
        detail, field = problem
        told = f"{self._base}: HTTP {status}: {detail}"
        if status in _REFUSED:
            raise Refused(told)
        if status in _PASSING or status >= 500 or (status, field) == (409, DAMAGED):
            raise StoreAway(told)
        if status == requests.codes.not_found or (status, field) == (409, OLD_FENCE):
            raise NotOurs(detail)
        if field == "file":
            raise KeepError(detail)
        if field == "profile":
            raise ParseError(detail)
        raise MistakeError(told)


async def patiently(action: Callable[[], T], *, patience_s: float) -> T:
    """Ask until the centre answers. StoreLost once it has not for `patience_s`."""
    began_s, pause_s = time.monotonic(), FIRST_PAUSE_S
    while True:
        try:
            return await asyncio.to_thread(action)
        except StoreAway as error:
            away_s = time.monotonic() - began_s
            if away_s + pause_s > patience_s:
                raise StoreLost(f"the centre is away for {away_s:.0f} s: {error}") from error
            logger.warning("the centre is away (%s); waiting", error)
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def _with_token(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    """As `auth`, and not as a header: requests would put what a ~/.netrc has for the host into its place."""

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return sign


def _problem(answer: requests.Response) -> tuple[str, str] | None:
    """What the centre itself says (RFC 9457), and of which field; None for an answer of anybody else on the way.

    While the web server is deployed anew, a proxy may answer with any status, and it knows nothing of runs.
    """
    if answer.headers.get("Content-Type", "").partition(";")[0].strip().lower() != PROBLEM:
        return None
    try:
        told = answer.json()
        if told["status"] != answer.status_code:
            return None
        return str(told["detail"]), str(told.get("field", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _is_this_machine(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
