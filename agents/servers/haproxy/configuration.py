"""HAProxy's own language: the haproxy.cfg of an instance, what the text of one says, flat, and what a build has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from agents.base.errors import ParseError

GLOBAL, DEFAULTS = "global", "defaults"
_GLOBAL_NAMES = """
busy-polling maxcompcpuusage maxcomprate maxconn maxconnrate maxpipes maxsessrate maxsslconn maxsslrate nbthread noepoll
nosplice noreuseport spread-checks tune.buffers.limit tune.buffers.reserve tune.bufsize tune.comp.maxlevel
tune.fd.edge-triggered tune.h2.header-table-size tune.h2.initial-window-size tune.h2.max-concurrent-streams
tune.http.maxhdr tune.idle-pool.shared tune.idletimer tune.listener.multi-queue tune.maxaccept tune.maxpollevents
tune.maxrewrite tune.pattern.cache-size tune.pipesize tune.pool-high-fd-ratio tune.pool-low-fd-ratio
tune.rcvbuf.client tune.rcvbuf.server tune.recv_enough tune.runqueue-depth tune.sched.low-latency
tune.sndbuf.client tune.sndbuf.server tune.ssl.cachesize tune.ssl.lifetime tune.ssl.maxrecord
"""
_DEFAULTS_NAMES = """
backlog balance fullconn hash-type http-reuse max-keep-alive-queue option_abortonclose option_clitcpka
option_http-buffer-request option_http-keep-alive option_http-no-delay option_http-server-close option_httpclose
option_prefer-last-server option_redispatch option_splice-auto option_splice-request option_splice-response
option_srvtcpka option_tcp-smart-accept option_tcp-smart-connect option_tcpka retries timeout_client
timeout_client-fin timeout_connect timeout_http-keep-alive timeout_http-request timeout_queue timeout_server
timeout_server-fin timeout_tarpit timeout_tunnel
"""
SECTION_OF: Mapping[str, str] = {
    **dict.fromkeys(_GLOBAL_NAMES.split(), GLOBAL),
    **{name.replace("_", " "): DEFAULTS for name in _DEFAULTS_NAMES.split()},
}
"""Keyword -> the section of the generated haproxy.cfg in which it stands. All of them tune; none names a file."""

USUAL: Mapping[str, str] = {"timeout connect": "5s", "timeout client": "60s", "timeout server": "60s"}
"""Without these HAProxy warns, and keeps connections for ever."""

_VALUE = re.compile(r"[A-Za-z0-9_.:+-]*(?: [A-Za-z0-9_.:+-]+)*")
_SECTIONS = ("backend", "cache", "defaults", "frontend", "global", "listen", "peers", "resolvers", "ring", "userlist")
# Keywords that are two words, in that what comes second is a name of its own.
_OF_TWO = ("option", "server", "stats", "timeout", "tune", "use_backend")
_COMMENT = re.compile(r"(?<!\\)#.*")


def keyword_value(name: str, value: str) -> str:
    """The value as it is; ValueError when the keyword is none that tunes, or its value is more than plain words."""
    if name not in SECTION_OF:
        raise ValueError(f"settings has no {name}: an admin may write it into a conf of your own")
    if len(value) > 200 or not _VALUE.fullmatch(value):
        raise ValueError(f"settings: the value of {name} is words of letters, digits and _ . : + -")
    return value


def generated(where: str, mode: str, settings: Mapping[str, str], proxy_to: Iterable[str], *, tls: bool) -> str:
    """A proxy that listens on `where` and logs no requests; without others behind it, it answers `ok` itself."""
    whole = {**USUAL, **settings}
    lines = {
        section: "".join(
            f"    {name} {value}".rstrip() + "\n" for name, value in whole.items() if SECTION_OF[name] == section
        )
        for section in (GLOBAL, DEFAULTS)
    }
    servers = "".join(f"    server s{number} {one}\n" for number, one in enumerate(proxy_to, start=1))
    answer = "" if servers else '    http-request return status 200 content-type "text/plain" string "ok"\n'
    bind = f"{where} ssl crt tls/both.pem" if tls else where
    return (
        f"global\n{lines[GLOBAL]}defaults\n    mode {mode}\n{lines[DEFAULTS]}"
        f"listen load\n    bind {bind}\n{answer}{servers}"
    )


def settings_of(text: str) -> dict[str, str]:
    """`listen load.timeout client` -> its words; what stands there again ends in [2].

    ParseError with the line of a keyword that stands before any section.
    """
    flat: dict[str, str] = {}
    seen: Counter[str] = Counter()
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        words = _COMMENT.sub("", line).split()
        if not words:
            continue
        if words[0] in _SECTIONS and not line[0].isspace():
            section = " ".join(words)
            continue
        if not section:
            raise ParseError(f"this is no haproxy.cfg: {words[0]} stands in no section", line=number)
        many = 2 if words[0] in _OF_TWO and len(words) > 1 else 1
        path = f"{section}.{' '.join(words[:many])}"
        seen[path] += 1
        flat[path + (f"[{seen[path]}]" if seen[path] > 1 else "")] = " ".join(words[many:])
    return flat


def version_of(text: str) -> str:
    """The version number; ParseError when the text tells none."""
    if match := re.search(r"^HA-?Proxy version (\S+)", text, re.MULTILINE):
        return match[1]
    raise ParseError("the program does not tell the version of an HAProxy")


def built_with(text: str) -> dict[str, str]:
    """From `haproxy -vv`: `version`, `tls_library`, `features` that it has, `multiplexing` of its choice."""
    found = {"version": version_of(text)}
    wanted = {
        "tls_library": r"^Running on OpenSSL version : (OpenSSL \S+)",
        "multiplexing": r"^Total: .* will use (\w+)",
        "compiler_flags": r"^ +CFLAGS += (.+)$",
        "features": r"^Feature list : (.+)$",
    }
    for name, pattern in wanted.items():
        if match := re.search(pattern, text, re.MULTILINE):
            found[name] = match[1].strip()
    if "features" in found:
        found["features"] = " ".join(word[1:] for word in found["features"].split() if word.startswith("+"))
    return found
