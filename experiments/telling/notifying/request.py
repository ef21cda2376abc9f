"""One POST to a webhook: 5 s in all, 64 KB of answer, no redirect, the checked address and no other."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import h11
from django.conf import settings

from experiments.registry.errors import RequestError
from experiments.telling.notifying.addresses import Target, refused, target_of

LIMIT_S = 5.0
LIMIT_BYTES = 64 * 1024
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


def post(url: str, body: bytes, headers: Mapping[str, str], *, resolve: Resolver | None = None) -> Answer:
    """Send it and wait for the answer; whatever goes wrong on the way is in the answer's `problem`."""
    began_s = time.monotonic()
    status, problem, text = None, "", ""
    try:
        status, text = asyncio.run(_within_limit(url, body, headers, resolve or _resolved))
    except NoAnswerError as error:
        problem = str(error)
    except RequestError as error:
        problem = error.message
    except TimeoutError:
        problem = f"No complete answer within {LIMIT_S:g} s."
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


async def _within_limit(url: str, body: bytes, headers: Mapping[str, str], resolve: Resolver) -> tuple[int, str]:
    asyncio.get_running_loop().set_default_executor(_LeftAlone(max_workers=1))
    async with asyncio.timeout(LIMIT_S):
        target = target_of(url)
        addresses = await resolve(target.host, target.port)
        if why := refused(addresses):
            raise NoAnswerError(why)
        reader, writer = await _connected(target, addresses)
        try:
            return await _exchange(target, body, headers, reader, writer)
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
    target: Target,
    body: bytes,
    headers: Mapping[str, str],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> tuple[int, str]:
    """The status and the beginning of the body."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=LIMIT_BYTES)
    given = {"Host": target.host_header, "Content-Length": str(len(body)), "Connection": "close", **headers}
    request = h11.Request(method="POST", target=target.path, headers=list(given.items()))
    for part in (request, h11.Data(data=body), h11.EndOfMessage()):
        writer.write(connection.send(part) or b"")
    await writer.drain()
    status, received = None, b""
    while len(received) < LIMIT_BYTES:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_CHUNK_BYTES))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            received += bytes(event.data)
        elif isinstance(event, h11.InformationalResponse):
            continue
        else:
            break
    if status is None:
        raise NoAnswerError("The connection was closed without an answer.")
    return status, _readable(received)


def _readable(received: bytes) -> str:
    """The beginning of the body as text that PostgreSQL takes."""
    return received[:KEPT_CHARS].decode("utf-8", "replace").replace("\0", "�")
