"""Waits until the server under test answers: its log line, a command on its host, and a probe from the driver host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from agents.base.command import TIMEOUT_S, Command, failure, script
from agents.base.errors import NotReady
from agents.base.regular_expression import matches
from agents.base.session import Session
from agents.remote.jobs import Job
from agents.running import host_commands
from agents.servers.base.server import Readiness

PROBE_ROUND_S = 2.0
PAUSE_S = 0.1

# Prints the body and, on the last line, the status; tries for a while before it answers, to save round trips. wget
# takes the place of curl where there is none, in the words that busybox knows, too; it gives no body with an error.
_PROBE = r"""
if command -v curl >/dev/null; then
  ask() { curl -sS -k --noproxy '*' --max-time 5 -w '\n%{http_code}' "$1" 2>&1; }
else
  unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
  ask() {
    { said=$({ timeout 5 wget -S -O - --no-check-certificate "$1" 2>&3; } 3>&1 >&4); } 4>&1
    code=$(printf '%s\n' "$said" | sed -n 's|^ *HTTP/[0-9.]* \([0-9]*\).*|\1|p' | head -n 1)
    [ -n "$code" ] || printf '%s' "$said" | tail -n 1
    printf '\n%s' "${code:-000}"
  }
fi
end=$(( $(date +%s) + $2 ))
while :; do
  answer=$(ask "$1")
  status=$(printf '%s' "$answer" | tail -n 1)
  [ "$status" = "$3" ] && break
  [ "$(date +%s)" -ge "$end" ] && break
  sleep 0.1
done
printf '%s' "$answer" | head -c 65536
printf '\n%s' "$status"
"""


# Succeeds when the port takes a connection; nothing is sent. Says why not.
_CONNECT = r"""
if command -v bash >/dev/null; then
  timeout 5 bash -c ': <>"/dev/tcp/$1/$2"' bash "$1" "$2" 2>&1
elif command -v nc >/dev/null; then
  nc -z -w 5 "$1" "$2" 2>&1
else
  echo "there is neither bash nor nc on this host to connect with"; exit 127
fi
"""


# Exits 0 when somebody listens on the port: state 0A in the kernel's own table, ports in hexadecimal.
_LISTENING = """
port=$(printf %04X "$1")
grep -qs " [0-9A-F]*:$port [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6
"""


def listening_command(port: int) -> Command:
    """Succeeds when some process listens on this TCP port, at whatever address."""
    return script(_LISTENING, str(port))


def probe_command(url: str, status: int) -> Command:
    """Requests `url` until it answers with `status` or the round is over."""
    return script(_PROBE, url, str(int(PROBE_ROUND_S)), str(status), timeout_s=PROBE_ROUND_S + TIMEOUT_S)


def connect_command(url: str) -> Command:
    """Succeeds when the port of `url` takes a connection."""
    address = urlsplit(url)
    port = address.port or (443 if address.scheme == "https" else 80)
    return script(_CONNECT, address.hostname or "", str(port), timeout_s=TIMEOUT_S)


async def wait_until_ready(
    ready: Readiness,
    url: str,
    *,
    driver: Session,
    server: Job,
    log_file: str,
    read_log: Callable[[], Awaitable[str]],
    ask: Callable[[], Awaitable[str]],
    check: Callable[[], None],
    called: str = "The server",
) -> None:
    """Returns when the server is ready; `called` is what sentences call it.

    Raises NotReady with the last answer when it is not within `ready.timeout_s`, CommandError when its process ended.
    `log_file` is the file of the run that the whole log of this server is kept as, `read_log` is awaited for its end,
    `ask` for what its own host says that is missing; `check` raises when the run was cancelled.
    """
    deadline = time.monotonic() + ready.timeout_s
    while True:
        check()
        last = time.monotonic() > deadline  # a look that began in time may be old: who looks may have stood still
        logged = not ready.log_pattern or matches(ready.log_pattern, await read_log())
        on_host = await ask() if logged else f"its log has no line like {ready.log_pattern!r} yet"
        wrong = on_host or await _probe(driver, url, ready)
        status = await server.status()
        if status.state != "running":  # whatever answered, it was not this server
            tail = (await read_log()).strip().splitlines()[-5:]
            message = f"{called} ended while starting (exit status {status.exit_status})."
            ended = failure(message, status.exit_status, by_author=True)
            ended.hint = f"Its last lines: {' / '.join(tail) or 'none'}. Its whole log is kept: {log_file}."
            raise ended
        if not wrong:
            return
        if last:
            hint = f"See the server's log: {log_file}."
            if not on_host:  # else nobody has tried the way to it
                hint = f"{_asked(ready, url, driver.host)}{hint}{_way(ready, driver.host)}"
            raise NotReady(f"{called} was not ready within {ready.timeout_s:g} s: {wrong}.", hint=hint)
        await asyncio.sleep(PAUSE_S)


def _asked(ready: Readiness, url: str, host: str) -> str:
    what = {"http": f"It was asked for {url} from {host}. ", "tcp": f"{host} tried to connect. ", "none": ""}
    return what[ready.probe]


def _way(ready: Readiness, host: str) -> str:
    if ready.probe == "none":
        return ""
    return f" If it has started by that, a firewall may keep {host} from the port; on the SUT: {host_commands.FIREWALL}"


async def _probe(driver: Session, url: str, ready: Readiness) -> str:
    """ "" when the answer is as expected, else what was wrong, in words."""
    if ready.probe == "none":
        return ""
    if ready.probe == "tcp":
        result = await driver.run(connect_command(url))
        said = result.text.strip().splitlines()[-1:] or ["no answer"]
        return "" if result.ok else f"its port takes no connection: {said[0][:200]}"
    result = await driver.run(probe_command(url, ready.status), max_output_bytes=1 << 17)
    body, _, status = result.text.rpartition("\n")
    if status != str(ready.status):
        detail = body.strip().splitlines()[0][:200] if body.strip() else ""
        return f"{url} answered {status or 'nothing'} instead of {ready.status} {detail}".strip()
    if ready.body_contains and ready.body_contains not in body:
        return f"{url} answered {status}, but without {ready.body_contains!r} in the body"
    return ""
