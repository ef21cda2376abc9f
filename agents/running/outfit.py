"""What a host has of what people bring to their runs: root rights, servers, Java, load tools.

None of it keeps a host from being ready. A run that needs what is missing is refused when it looks; the test of a
connection tells it before, each thing with the command that mends it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agents.base.command import Command, script
from agents.base.readable import CLOSED, open_up
from agents.base.session import Session
from agents.drivers import DRIVERS
from agents.running import host_commands

Topic = Literal["root", "linger", "server", "tomcat", "java", "load_tool", "way"]

USUAL_PORT = 8080
"""The port of a server whose application names no other."""
_WAY_WITHIN_S = 4
_TIMED_OUT, _REFUSED = "28", "7"
# curl ends with 7 when the host itself refuses, which takes an open way, and with 28 when nobody answers at all.
_WAYS = """
command -v curl >/dev/null 2>&1 || exit 0
while [ $# -gt 1 ]; do
  curl -s -o /dev/null --noproxy '*' --connect-timeout "$WITHIN" --max-time "$WITHIN" "http://$2/"
  printf 'way %s %s\\n' "$?" "$1"
  shift 2
done
""".replace("$WITHIN", str(_WAY_WITHIN_S))

OTHER_SERVERS = {
    "PostgreSQL": "postgres /usr/lib/postgresql/*/bin/postgres /usr/pgsql-*/bin/postgres /usr/local/pgsql/bin/postgres",
    "nginx": "nginx /usr/sbin/nginx",
    "HAProxy": "haproxy /usr/sbin/haproxy",
    "Redis": "redis-server",
    "Valkey": "valkey-server",
    "Node.js": "node",
}
"""Where servers beside Tomcat are: their programs, on the PATH or where packages put them."""
TOMCAT_PLACES = ("/opt/*tomcat*", "/srv/*tomcat*", "/usr/share/*tomcat*", "/usr/local/*tomcat*")

_LOOK = (
    CLOSED
    + """
[ "$(id -u)" = 0 ] && echo "root yes" || {
  if ! command -v sudo >/dev/null 2>&1; then echo "root none"
  elif sudo -n true >/dev/null 2>&1; then echo "root sudo"
  else echo "root asks"
  fi
}
if [ -d /run/systemd/system ] && [ "$(id -u)" != 0 ]; then
  [ -e "/var/lib/systemd/linger/$(id -un)" ] && echo "linger yes" || echo "linger no"
fi
for home in PLACES; do
  [ -d "$home" ] && [ ! -L "$home" ] || continue
  for file in bin/catalina.sh lib/catalina.jar conf/server.xml; do
    shut=$(closed "$home/$file")
    [ -z "$shut" ] || break
  done
  if [ -n "$shut" ]; then printf 'tomcat closed %s\\t%s\\n' "$home" "$shut"
  elif [ ! -f "$home/bin/catalina.sh" ] || [ ! -f "$home/lib/catalina.jar" ]; then continue
  elif [ ! -f "$home/conf/server.xml" ]; then printf 'tomcat apart %s\\t\\n' "$home"
  else printf 'tomcat open %s\\t\\n' "$home"
  fi
done
OTHERS
command -v java >/dev/null 2>&1 && echo "java yes" || echo "java no"
for tool; do
  command -v "$tool" >/dev/null 2>&1 && echo "tool $tool"
done
echo end
"""
).replace("PLACES", " ".join(TOMCAT_PLACES))
_LOOK = _LOOK.replace(
    "OTHERS",
    "\n".join(
        f'for file in {places}; do command -v "$file" >/dev/null 2>&1 && echo "server {name}" && break; done'
        for name, places in OTHER_SERVERS.items()
    ),
)


@dataclass(frozen=True)
class HostFinding:
    """One thing that runs may use: `there`, or `missing`; then `command` is what mends it on the host, "" = none.

    `topic` is what it is about; a `sentence` without a host's name, for a person.
    """

    topic: Topic
    result: Literal["there", "missing"]
    sentence: str
    command: str = ""


def look_command() -> Command:
    """Prints which of these things a login finds; it changes nothing, and needs no root."""
    return script(_LOOK, *tools())


def tools() -> tuple[str, ...]:
    """The load tools that a host has on its PATH, by the names of their programs."""
    fields = (tool.model_fields.get("binary") for tool in DRIVERS.values())
    return tuple(dict.fromkeys(str(field.default) for field in fields if field is not None))


async def look_for(session: Session, user: str, *, serves: bool, drives: bool) -> tuple[HostFinding, ...]:
    """What the host has for the part of the server, of the load tool or both, what is missing first.

    CommandError when it cannot be looked at.
    """
    result = await session.run(look_command())
    return findings(result.check(f"Looking at what {session.host} has").text, user, serves=serves, drives=drives)


async def look_for_ways(session: Session, servers: Mapping[str, str]) -> tuple[HostFinding, ...]:
    """Whether the usual port of these servers (name -> address) can be reached from this driver host.

    A server need not run for it: its host refuses where the way is open, and a firewall that drops is silent.
    """
    words = [word for name, at in servers.items() for word in (name, f"{_in_url(at)}:{USUAL_PORT}")]
    if not words:
        return ()
    result = await session.run(script(_WAYS, *words))
    return ways(result.text)


def ways(output: str) -> tuple[HostFinding, ...]:
    """What `look_for_ways` printed, as findings."""
    found = []
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        status, _, server = rest.partition(" ")
        if word != "way" or not server:
            continue
        if status == _TIMED_OUT:
            text = f"Nothing answers from port {USUAL_PORT} of {server}, as behind a firewall."
            text += f" On {server}, with this host's address for DRIVER:"
            found.append(HostFinding("way", "missing", text, host_commands.FIREWALL))
        elif status in ("0", "22", "52", "56", _REFUSED):
            found.append(HostFinding("way", "there", f"The way to port {USUAL_PORT} of {server} is open."))
    return tuple(found)


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def findings(output: str, user: str, *, serves: bool, drives: bool) -> tuple[HostFinding, ...]:
    """The answer of `look_command` in sentences, what is missing first."""
    told = [line.partition(" ")[::2] for line in output.splitlines()]
    found = [*_root(told, user)]
    if serves:
        found += _servers(told)
    if drives:
        found += _tools(told)
    return tuple(sorted(found, key=lambda one: one.result == "there"))


def _root(told: list[tuple[str, str]], user: str) -> list[HostFinding]:
    """Whether BenchHub can act as root; a root login is told nothing."""
    found = []
    without = "Recipes that change settings of the host fail; all else works."
    match dict(told).get("root"):
        case "sudo":
            found.append(HostFinding("root", "there", f"{user} may use sudo without a password."))
        case "asks":
            text = f"sudo asks {user} for a password, or refuses it. {without}"
            found.append(HostFinding("root", "missing", text, host_commands.allow_sudo(user)))
        case "none":
            install = f"{host_commands.SUDO}  # as root; then: {host_commands.allow_sudo(user)}"
            found.append(HostFinding("root", "missing", f"There is no sudo. {without}", install))
    if dict(told).get("linger") == "no":
        text = f"systemd ends what {user} keeps apart at its last logout, so a process that hides cannot be found."
        found.append(HostFinding("linger", "missing", text, host_commands.linger(user)))
    return found


def _servers(told: list[tuple[str, str]]) -> list[HostFinding]:
    found = []
    places = [text.partition(" ")[::2] for word, text in told if word == "tomcat"]
    for state, text in places:
        home, _, shut = text.partition("\t")
        if state == "open":
            found.append(HostFinding("tomcat", "there", f"Tomcat in {home}."))
        elif state == "apart":
            text = (
                f"The Tomcat in {home} has no conf beside it, as packages of Debian do; runs need Apache's own archive."
            )
            found.append(HostFinding("tomcat", "missing", text, host_commands.TOMCAT))
        else:
            text = f"There may be a Tomcat in {home}, but this login may not read {shut}."
            found.append(HostFinding("tomcat", "missing", text, open_up(shlex.quote(home))))
    others = [text for word, text in told if word == "server"]
    if others:
        found.append(HostFinding("server", "there", f"Servers: {', '.join(others)}."))
    if not places and not others:
        looked = ", ".join(TOMCAT_PLACES)
        text = f"No Tomcat in {looked}. Another server, or one elsewhere, is named in the application."
        found.append(HostFinding("tomcat", "missing", text, host_commands.TOMCAT))
    if ("java", "yes") in told:
        found.append(HostFinding("java", "there", "Java is on the PATH."))
    elif places or not others:
        text = "No Java on the PATH: Tomcat and Liberty need one, there or as java_home of the application."
        found.append(HostFinding("java", "missing", text, host_commands.JAVA))
    return found


def _tools(told: list[tuple[str, str]]) -> list[HostFinding]:
    there = [text for word, text in told if word == "tool"]
    if there:
        return [HostFinding("load_tool", "there", f"Load tools: {', '.join(there)}.")]
    text = f"No load tool is on the PATH ({', '.join(tools())}); one is enough. JMeter may be anywhere."
    return [HostFinding("load_tool", "missing", text, host_commands.LOAD_TOOL)]
