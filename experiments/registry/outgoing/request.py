"""One request to an address that a user typed: bounded, no redirect, the checked address and no other."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import h11
from django.conf import settings

from experiments.registry.errors import RequestError
from experiments.registry.outgoing.addresses import Target, refused, target_of

LIMIT_S = 5.0
LIMIT_BYTES = 64 * 1024
"""Of a message to a webhook, and of the headers of any answer."""
KEPT_CHARS = 4000
_CHUNK_BYTES = 16 * 1024

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True)
class Answer:
    """What came back. `status` None = no answer, for the reason in `problem`."""

    status: int | None
    duration_ms: float
    problem: str = ""
    body: str = ""

    @property
    def good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class NoAnswerError(Exception):
    """There is no answer, for this reason."""


@dataclass(frozen=True)
class _Asked:
    """A request. `kept_bytes`: how much of the answer is read; `whole`: one that is longer is no answer."""

    method: str
    url: str
    path: str
    body: bytes
    headers: Mapping[str, str]
    limit_s: float
    kept_bytes: int
    whole: bool = False


def post(url: str, body: bytes, headers: Mapping[str, str], *, resolve: Resolver | None = None) -> Answer:
    """Send it and wait for the answer, of which the beginning is kept; whatever goes wrong is in its `problem`."""
    answer = _answer(_Asked("POST", url, "", body, headers, LIMIT_S, LIMIT_BYTES), resolve or _resolved)
    return replace(answer, body=answer.body[:KEPT_CHARS])


def get(
    url: str,
    path: str,
    headers: Mapping[str, str],
    *,
    limit_s: float,
    limit_bytes: int,
    resolve: Resolver | None = None,
) -> Answer:
    """Ask for `path`, with its query, below this URL. The answer is whole; a longer one is a `problem`."""
    asked = _Asked("GET", url, path, b"", headers, limit_s, limit_bytes, whole=True)
    return _answer(asked, resolve or _resolved)


def _answer(asked: _Asked, resolve: Resolver) -> Answer:
    began_s = time.monotonic()
    status, problem, text = None, "", ""
    try:
        status, text = asyncio.run(_within_limit(asked, resolve))
    except NoAnswerError as error:
        problem = str(error)
    except RequestError as error:
        problem = error.message
    except TimeoutError:
        problem = f"No complete answer within {asked.limit_s:g} s."
    except ssl.SSLCertVerificationError as error:  # what is wrong with which certificate
        problem = f"TLS failed: the certificate is not accepted: {error.verify_message.rstrip('.')}."
    except ssl.SSLError as error:
        problem = f"TLS failed: {error.reason or error}."
    except (OSError, h11.ProtocolError) as error:
        problem = f"The connection failed: {error}."
    if status is not None and 300 <= status < 400:
        problem = "It answered with a redirect, which is not followed: give the final URL."
    return Answer(status, 1000 * (time.monotonic() - began_s), problem[:500], text)


class _LeftAlone(ThreadPoolExecutor):
    """Looks up names. A name server that says nothing is left alone when the time is up; the loop would wait for it."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


async def _within_limit(asked: _Asked, resolve: Resolver) -> tuple[int, str]:
    asyncio.get_running_loop().set_default_executor(_LeftAlone(max_workers=1))
    async with asyncio.timeout(asked.limit_s):
        target = target_of(asked.url)
        if asked.path:
            target = replace(target, path=target.path.rstrip("/") + asked.path)
        addresses = await resolve(target.host, target.port)
        if why := refused(addresses):
            raise NoAnswerError(why)
        reader, writer = await _connected(target, addresses)
        try:
            return await _exchange(target, asked, reader, writer)
        finally:
            writer.transport.abort()  # nobody waits for a polite end of TLS


async def _resolved(host: str, port: int) -> Sequence[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NoAnswerError(f"The name {host} cannot be resolved: {error.strerror or error}.") from error
    except UnicodeError as error:  # an empty part between dots, or one of more than 63 characters
        raise NoAnswerError(f"The name {host} is no name of a host.") from error
    return list(dict.fromkeys(str(info[4][0]) for info in found))


async def _connected(target: Target, addresses: Sequence[str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The first of these addresses that takes the connection; the certificate must be that of the name."""
    context, name = None, None
    if target.scheme == "https":
        context, name = ssl.create_default_context(), target.host
        if settings.BENCHHUB_WEBHOOK_CA_FILE is not None:
            context.load_verify_locations(settings.BENCHHUB_WEBHOOK_CA_FILE)
    for address in addresses[:-1]:
        try:
            return await asyncio.open_connection(address, target.port, ssl=context, server_hostname=name)
        except ssl.SSLError:
            raise
        except OSError:
            continue
    return await asyncio.open_connection(addresses[-1], target.port, ssl=context, server_hostname=name)


async def _exchange(
    target: Target, asked: _Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[int, str]:
    """The status and the body, or its beginning."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=LIMIT_BYTES)
    given = {"Host": target.host_header, "Connection": "close", **asked.headers}
    if asked.method == "POST":
        given["Content-Length"] = str(len(asked.body))
    request = h11.Request(method=asked.method, target=target.path, headers=list(given.items()))
    for part in (request, h11.Data(data=asked.body), h11.EndOfMessage()):
        writer.write(connection.send(part) or b"")
    await writer.drain()
    status, received = None, bytearray()
    while len(received) < asked.kept_bytes:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_CHUNK_BYTES))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            received += event.data
        elif isinstance(event, h11.InformationalResponse):
            continue
        else:
            return _status_of(status), _readable(received)
    if asked.whole:
        raise NoAnswerError(f"The answer has more than {asked.kept_bytes // 1024:,} KiB.")
    return _status_of(status), _readable(received)


def _status_of(status: int | None) -> int:
    if status is None:
        raise NoAnswerError("The connection was closed without an answer.")
    return status


def _readable(received: bytes | bytearray) -> str:
    """The body as text that PostgreSQL takes."""
    return received.decode("utf-8", "replace").replace("\0", "\ufffd")
