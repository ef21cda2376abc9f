"""Sessions over SSH. Only this module imports asyncssh: its defaults hide lost connections and choke on bad bytes."""

from __future__ import annotations

import asyncio
import math
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import asyncssh

from agents.base.command import Command, CommandResult
from agents.base.errors import CommandError, ConnectError, ProgramError
from agents.base.session import Stream
from agents.remote.address import Address, HostKey
from agents.remote.connect_errors import another_key, did_not_begin, login_refused, unreachable
from agents.remote.framing import KILL_AFTER_S, Framed, Output, command_text, for_any_shell, from_input, stream_text
from agents.remote.login_turns import LoginTurns
from agents.remote.standing_still import wait_for
from agents.remote.transfer import get_command, put_command

CONNECT_TIMEOUT_S = 15
CLOSE_TIMEOUT_S = 5
KEEPALIVE_INTERVAL_S = 5
KEEPALIVE_MISSES = 3
MAX_CHANNELS = 4
"""Channels at a time on one connection; sshd allows 10 by default, and a host may allow fewer."""
ANSWER_WITHIN_S = 10
"""How long after that the host may take to say so."""
ENDS_WITHIN_S = 0.2
"""How long a channel may take to close when its command has ended: what a start-up file left behind may hold it."""
_ENDED_BY_TIMEOUT = (124, 137, 143)  # timeout(1): it sent TERM; it sent KILL; it sent TERM and is of busybox
LONGEST, DROPBEAR_LONGEST = 100_000, 8000
"""Bytes of a command that may be asked for: Linux allows 131,072 in one argument, dropbear 9000 in all."""
SESSION_TRIES = 50
"""Tries a tenth of a second apart: sshd needs a moment to notice that an earlier session on the connection is over."""
MAX_LOGINS_PER_HOST = 2
"""Logins in progress to one host: sshd starts to reset connections when many log in at once (MaxStartups)."""

# A host shows one key at a time, so each type is asked for by itself, first the one that people are told to compare.
# A dropbear with an ed25519 key only offers RSA all the same, and hangs up on whoever takes it.
_SHOWN_TYPES = (
    ("ssh-ed25519",),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    ("rsa-sha2-512", "rsa-sha2-256"),
)
# Asked for after the pinned key's own: a host that lost its key then shows another one and is refused for that, instead
# of hanging up without a reason.
_OTHER_HOST_KEYS = [name for names in _SHOWN_TYPES for name in names]
_CHUNK_BYTES = 1 << 16
_LOST = (asyncssh.Error, OSError)


_logins = LoginTurns(MAX_LOGINS_PER_HOST)


async def connect(address: Address, private_key: str | bytes, passphrase: str | None = None) -> SshSession:
    """Log in with a key, to exactly the host whose key is pinned.

    Raises ConnectError: permanent when the key is refused or unusable or the host key differs, else worth another try.
    """
    try:
        key = asyncssh.import_private_key(private_key, passphrase)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as exc:
        raise ConnectError(
            f"The private key for {address} cannot be used: {exc}",
            hint="Store the key again, in OpenSSH format and with its passphrase if it has one.",
            permanent=True,
        ) from exc
    jump = await connect(address.jump, private_key, passphrase) if address.jump else None
    try:
        connection = await _log_in(address, key, jump)
    except BaseException:
        if jump:
            await jump.close()
        raise
    return SshSession(address, connection, jump)


async def _log_in(address: Address, key: asyncssh.SSHKey, jump: SshSession | None) -> asyncssh.SSHClientConnection:
    pinned = _pinned_key(address)
    key_types = [name.decode() for name in pinned.sig_algorithms]
    async with _logins.turn(address.address, address.port):
        try:
            return await asyncssh.connect(
                address.address,
                address.port,
                username=address.user,
                client_keys=[key],
                known_hosts=([pinned], [], []),
                server_host_key_algs=key_types + [name for name in _OTHER_HOST_KEYS if name not in key_types],
                tunnel=jump.connection if jump else (),
                config=None,
                agent_path=None,
                agent_forwarding=False,
                preferred_auth="publickey",
                connect_timeout=CONNECT_TIMEOUT_S,
                login_timeout=CONNECT_TIMEOUT_S,
                keepalive_interval=KEEPALIVE_INTERVAL_S,
                keepalive_count_max=KEEPALIVE_MISSES,
            )
        except asyncssh.PermissionDenied as exc:
            raise login_refused(address) from exc
        except (asyncssh.HostKeyNotVerifiable, asyncssh.KeyExchangeFailed) as exc:
            raise another_key(address, exc) from exc
        except (*_LOST, ValueError) as exc:
            raise unreachable(str(address), exc, within_s=CONNECT_TIMEOUT_S) from exc


async def scan_host_keys(address: str, port: int, jump: SshSession | None = None) -> tuple[HostKey, ...]:
    """The keys that a host shows, one of each type, without logging in; ed25519 first.

    A person must compare the fingerprint of one before it is pinned. Raises ConnectError when the host is out of reach
    or shows none.
    """
    shown: list[HostKey] = []
    refused: Exception | None = None
    for names in _SHOWN_TYPES:
        try:
            key = await _shown_key(address, port, names, jump)
        except (asyncssh.Error, ConnectionResetError) as exc:  # it has no key of this type, or hangs up when asked
            refused = refused or exc
            continue
        except (OSError, ValueError) as exc:
            if shown:
                break  # what it has shown is enough to go on with
            raise unreachable(f"{address}:{port}", exc, within_s=CONNECT_TIMEOUT_S) from exc
        if key is not None:
            shown.append(HostKey(_public_line(key)))
    if not shown:
        if refused is not None and not isinstance(refused, asyncssh.KeyExchangeFailed):
            raise unreachable(f"{address}:{port}", refused, within_s=CONNECT_TIMEOUT_S) from refused
        raise ConnectError(f"{address}:{port} showed no host key.", hint="Is it an SSH server?")
    return tuple(shown)


async def _shown_key(
    address: str, port: int, names: tuple[str, ...], jump: SshSession | None
) -> asyncssh.SSHKey | None:
    async with _logins.turn(address, port), asyncio.timeout(CONNECT_TIMEOUT_S):
        return await asyncssh.get_server_host_key(
            address,
            port,
            tunnel=jump.connection if jump else (),
            config=None,
            server_host_key_algs=list(names),
        )


def _public_line(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def _pinned_key(address: Address) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_public_key(address.host_key)
    except asyncssh.KeyImportError as exc:
        raise ConnectError(
            f"No usable host key is approved for {address}.",
            hint="Scan the host's key, compare the fingerprint on its console and approve it.",
            permanent=True,
        ) from exc


class SshSession:
    """An open SSH connection; see `agents.base.session.Session` for what its methods promise."""

    def __init__(
        self, address: Address, connection: asyncssh.SSHClientConnection, jump: SshSession | None = None
    ) -> None:
        self.address = address
        self.connection = connection
        self._jump = jump
        self._channels = asyncio.Semaphore(MAX_CHANNELS)
        self._streams = 0

    @property
    def host(self) -> str:
        return self.address.name

    async def run(self, command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        # The host ends the command itself: a root login may not be signalled through sshd, and a link that was cut for
        # a while delays an answer, which is no fault of the command. Only the host can tell the two apart.
        limit_s = math.ceil(command.timeout_s) + 1
        mark = secrets.token_hex(8)
        text = command_text(command.argv, mark, limit_s=limit_s, privileged=self._needs_sudo(command))
        async with self._channels:
            begun_s = time.monotonic()
            exchange = asyncio.create_task(self._exchange(text, mark, command.stdin, max_output_bytes))
            try:
                stood_still_s = await wait_for(exchange, limit_s + KILL_AFTER_S + ANSWER_WITHIN_S)
                if not exchange.done():
                    await self._insist_on_an_answer()
                    raise self._overdue(command)
                status, out, err = exchange.result()
            finally:
                exchange.cancel()
                await asyncio.wait({exchange})
        duration_s = time.monotonic() - begun_s
        if status in _ENDED_BY_TIMEOUT and duration_s >= command.timeout_s:
            if stood_still_s:
                raise ConnectError(
                    f"BenchHub itself stood still for {stood_still_s:.0f} s, and {self.host} ended a command meanwhile."
                )
            raise self._overdue(command)
        return CommandResult(status, out.data, err.data, duration_s, out.truncated or err.truncated)

    async def _exchange(
        self, text: str, mark: str, stdin: bytes, max_output_bytes: int
    ) -> tuple[int | None, Output, Output]:
        """Exit status, standard output and standard error of a command that gets this standard input."""
        process = await self._open(text)
        sending = asyncio.create_task(_send(process.stdin, stdin))
        try:
            out, err = await asyncio.gather(
                _read(process.stdout, mark, max_output_bytes), _read(process.stderr, mark, max_output_bytes)
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(ENDS_WITHIN_S if out.exit_status is not None else None):
                    await process.wait_closed()
        finally:
            sending.cancel()
            await asyncio.wait({sending})
            _end(process)
        status = _exit_status(process) if out.exit_status is None else out.exit_status
        if not out.begun and status is not None:
            raise did_not_begin(self.address, status, out.noise + err.noise)
        return (None if out.exit_status is None and not status else status), out, err

    async def mutate(self, command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        return await self.run(command, max_output_bytes=max_output_bytes)

    async def start(self, command: Command) -> Stream:
        if command.stdin:
            raise ValueError("a stream takes no standard input")
        if self._streams >= MAX_CHANNELS - 1:
            raise CommandError(f"{self._streams} streams are open to {self.host}; the last channel is for commands.")
        await self._channels.acquire()
        self._streams += 1
        try:
            mark = secrets.token_hex(8)
            process = await self._open(stream_text(command.argv, mark, privileged=self._needs_sudo(command)))
            return _SshStream(process, mark, self._stream_closed)
        except BaseException:
            self._stream_closed()
            raise

    async def put(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        self._told(await self.run(put_command(path, data, mode=mode))).check(f"Writing {path} on {self.host}")

    async def get(self, path: str, *, offset: int = 0, max_bytes: int = 1 << 20) -> bytes:
        result = await self.run(get_command(path, offset=offset, max_bytes=max_bytes), max_output_bytes=max_bytes)
        return self._told(result).check(f"Reading {path} on {self.host}").stdout

    async def close(self) -> None:
        self.connection.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self.connection.wait_closed()
        except TimeoutError:
            self.connection.abort()
        if self._jump:
            await self._jump.close()

    def _told(self, result: CommandResult) -> CommandResult:
        """Both may be repeated, so a lost connection is one to open again, not a failed file."""
        if result.exit_status is None:
            raise ConnectError(f"The connection to {self.address} ended while a file was on its way.")
        return result

    def _needs_sudo(self, command: Command) -> bool:
        return command.privileged and self.address.user != "root"

    def _overdue(self, command: Command) -> CommandError:
        error = ProgramError if command.by_author else CommandError
        return error(
            f"A command on {self.host} did not end within {command.timeout_s:g} s, and was ended: {_brief(command)}"
        )

    async def _insist_on_an_answer(self) -> None:
        """ConnectError when the host is silent: then it was the link that failed, and not the command that hung."""
        try:
            async with asyncio.timeout(KEEPALIVE_INTERVAL_S):
                process = await self._open("true")
                await process.wait_closed()
        except TimeoutError as exc:
            raise ConnectError(f"{self.address} has been silent for {KEEPALIVE_INTERVAL_S:g} s.") from exc
        if process.exit_status is None:
            raise ConnectError(f"The connection to {self.address} ended under a command.")

    async def _open(self, text: str) -> asyncssh.SSHClientProcess[bytes]:
        if "\0" in text:
            raise ProgramError("A command for a shell cannot contain a NUL character.")
        sent, typed = for_any_shell(text), b""
        is_dropbear = "dropbear" in str(self.connection.get_extra_info("server_version"))
        if len(sent) > (DROPBEAR_LONGEST if is_dropbear else LONGEST):
            sent, typed = from_input(text)
        tries = 0
        while True:
            tries += 1
            try:
                process = await self.connection.create_process(sent, encoding=None)
                if typed:
                    with suppress(BrokenPipeError):  # what ended at once reads nothing; its output says why
                        process.stdin.write(typed)
                return process
            except _LOST as exc:
                if not isinstance(exc, asyncssh.ChannelOpenError) or self.connection.is_closed():
                    raise ConnectError(f"The connection to {self.address} takes no command: {exc}") from exc
                if tries == SESSION_TRIES:  # a new connection would be refused the same
                    raise ConnectError(
                        f"{self.address} refuses another session on one connection; BenchHub needs {MAX_CHANNELS}.",
                        hint="Set MaxSessions in its sshd_config to 10, which is sshd's default, and reload sshd.",
                        permanent=True,
                    ) from exc
            await asyncio.sleep(0.1)

    def _stream_closed(self) -> None:
        self._streams -= 1
        self._channels.release()


class _SshStream:
    def __init__(self, process: asyncssh.SSHClientProcess[bytes], mark: str, on_close: Callable[[], None]) -> None:
        self._process = process
        self._framed = Framed(mark, runs_on=True)
        self._on_close = on_close
        self._open = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with suppress(*_LOST):
            while chunk := await self._process.stdout.read(_CHUNK_BYTES):
                if own := self._framed.feed(chunk):
                    yield own

    async def close(self) -> None:
        if self._open:
            self._open = False
            _end(self._process)
            self._on_close()


async def _read(reader: asyncssh.SSHReader[bytes], mark: str, max_bytes: int) -> Output:
    """All that comes is read, so that the remote side never blocks; only `max_bytes` of it are kept."""
    framed = Framed(mark)
    kept = bytearray()
    truncated = False

    def keep(own: bytes) -> bool:
        room = max_bytes - len(kept)
        kept.extend(own[:room])
        return len(own) > room

    with suppress(*_LOST):
        while not framed.ended and (chunk := await reader.read(_CHUNK_BYTES)):
            truncated = keep(framed.feed(chunk)) or truncated
    truncated = keep(framed.close()) or truncated
    return Output(bytes(kept), truncated, framed.begun, framed.exit_status, framed.noise)


async def _send(writer: asyncssh.SSHWriter[bytes], data: bytes) -> None:
    """A command need not read its standard input: that it ends before is told by its exit status."""
    with suppress(*_LOST):
        for start in range(0, len(data), _CHUNK_BYTES):
            writer.write(data[start : start + _CHUNK_BYTES])
            await writer.drain()
        writer.write_eof()


def _end(process: asyncssh.SSHClientProcess[bytes]) -> None:
    """Close the channel; what runs there is signalled, too, where the host signals for this login.

    Also after the end of its input, which asyncssh counts as closing: an open channel is one session less on the host.
    """
    with suppress(*_LOST):
        process.terminate()
    process.close()


def _exit_status(process: asyncssh.SSHClientProcess[bytes]) -> int | None:
    """The status as a shell tells it, 128 + number for a signal; None when the host did not tell."""
    if killed := process.exit_signal:
        number = getattr(signal, f"SIG{killed[0]}", None)
        return 128 + number if isinstance(number, signal.Signals) else 255
    return process.exit_status


def _brief(command: Command) -> str:
    text = " ".join(" ".join(command.argv[:4]).split())
    return text if len(text) <= 120 else text[:117] + "..."
