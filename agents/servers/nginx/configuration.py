"""nginx's own language: the nginx.conf of an instance, and what the text of one says, flat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from agents.base.errors import ParseError

MAIN, EVENTS, HTTP = "main", "events", "http"
_PLACES: Mapping[str, str] = {
    MAIN: "pcre_jit thread_pool timer_resolution worker_cpu_affinity worker_priority worker_processes"
    " worker_rlimit_nofile worker_shutdown_timeout",
    EVENTS: "accept_mutex accept_mutex_delay multi_accept use worker_aio_requests worker_connections",
    HTTP: "aio chunked_transfer_encoding client_body_buffer_size client_body_timeout client_header_buffer_size"
    " client_header_timeout client_max_body_size connection_pool_size directio directio_alignment etag gzip"
    " gzip_buffers gzip_comp_level gzip_disable gzip_http_version gzip_min_length gzip_proxied gzip_static gzip_types"
    " gzip_vary http2 http2_max_concurrent_streams if_modified_since keepalive_disable keepalive_requests"
    " keepalive_time keepalive_timeout large_client_header_buffers lingering_close lingering_time lingering_timeout"
    " log_not_found max_ranges open_file_cache open_file_cache_errors open_file_cache_min_uses open_file_cache_valid"
    " output_buffers postpone_output proxy_buffer_size proxy_buffering proxy_buffers proxy_busy_buffers_size"
    " proxy_connect_timeout proxy_http_version proxy_read_timeout proxy_request_buffering proxy_send_timeout"
    " proxy_socket_keepalive read_ahead request_pool_size reset_timedout_connection send_lowat send_timeout sendfile"
    " sendfile_max_chunk server_tokens ssl_buffer_size ssl_ciphers ssl_early_data ssl_ecdh_curve"
    " ssl_prefer_server_ciphers ssl_protocols ssl_session_cache ssl_session_tickets ssl_session_timeout tcp_nodelay"
    " tcp_nopush types_hash_bucket_size types_hash_max_size variables_hash_bucket_size variables_hash_max_size",
}
PLACE_OF: Mapping[str, str] = {name: place for place, names in _PLACES.items() for name in names.split()}
"""Directive -> the block of the generated nginx.conf in which it stands. All of them tune; none names a file."""

_VALUE = re.compile(r"[A-Za-z0-9_.:=+*!@/-]+(?: [A-Za-z0-9_.:=+*!@/-]+)*")

_TYPES = """
    types {
        text/html html htm;
        text/css css;
        text/plain txt md;
        text/csv csv;
        text/javascript js;
        application/json json;
        image/svg+xml svg;
        image/png png;
        image/jpeg jpg jpeg;
    }
    default_type application/octet-stream;
"""

# The words in quotes have no group of their own that is empty, so that "" is a word as well.
_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<mark>[{};])|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'"""
    r"""|(?P<word>(?:\\.|\$\{[^}\n]*\}|[^\s{};"'#\\])(?:\\.|\$\{[^}\n]*\}|[^\s{};\\])*)""",
    re.DOTALL,
)


def directive_value(name: str, value: str) -> str:
    """The value as it is; ValueError when the directive is none that tunes, or its value might end it early."""
    if name not in PLACE_OF:
        raise ValueError(f"settings has no {name}: an admin may write it into a conf of your own")
    if len(value) > 500 or not _VALUE.fullmatch(value):
        raise ValueError(f"settings: the value of {name} is words of letters, digits and _ . : = + * ! @ / -")
    return value


def generated(
    listen: str, settings: Mapping[str, str], *, root: str, proxy_to: Iterable[str], keep: int, tls: bool, status: bool
) -> str:
    """A server of static files, or of what others answer, that listens on `listen` and logs no requests."""
    of = {place: [n for n in settings if PLACE_OF[n] == place] for place in (MAIN, EVENTS, HTTP)}
    indents = {MAIN: "", EVENTS: "    ", HTTP: "    "}
    lines = {place: "".join(f"{indents[place]}{n} {settings[n]};\n" for n in of[place]) for place in of}
    servers = "".join(f"        server {one};\n" for one in proxy_to)
    upstream = f"    upstream application {{\n{servers}        keepalive {keep};\n    }}\n" if servers else ""
    http_1_1 = "" if "proxy_http_version" in settings else "            proxy_http_version 1.1;\n"
    passes = (
        f"        location / {{\n            proxy_pass http://application;\n{http_1_1}"
        '            proxy_set_header Connection "";\n            proxy_set_header Host $host;\n        }\n'
    )
    key = "        ssl_certificate tls/certificate.pem;\n        ssl_certificate_key tls/key.pem;\n" if tls else ""
    status_lines = "        location = /stub_status {\n            stub_status;\n        }\n" if status else ""
    return (
        f"error_log stderr warn;\n{lines[MAIN]}events {{\n{lines[EVENTS]}}}\n"
        f"http {{\n    include temporary.conf;{_TYPES}"
        f"    access_log off;\n{lines[HTTP]}{upstream}    server {{\n        listen {listen};\n        server_name _;\n"
        f'{key}        root "{root}";\n{status_lines}{passes if upstream else ""}    }}\n}}\n'
    )


def settings_of(text: str) -> dict[str, str]:
    """`http.server.location /.proxy_pass` -> its words; what stands there again ends in [2].

    Raises ParseError with the line where a block or a directive is not closed, or where no word can be read.
    """
    flat: dict[str, str] = {}
    blocks: list[tuple[str, Counter[str]]] = [("", Counter())]
    words: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParseError("this is no nginx.conf: a quote is not closed", line=text.count("\n", 0, at) + 1)
        at = match.end()
        mark = match["mark"]
        if mark is None:
            words += [word for word in (match["double"], match["single"], match["word"]) if word is not None]
        elif mark == "}":
            if words or len(blocks) == 1:
                raise ParseError("this is no nginx.conf: } closes no block", line=text.count("\n", 0, at) + 1)
            blocks.pop()
        elif not words:
            raise ParseError(f"this is no nginx.conf: {mark} has no name before it", line=text.count("\n", 0, at) + 1)
        else:
            before, seen = blocks[-1]
            name = " ".join(words) if mark == "{" else words[0]
            seen[name] += 1
            path = f"{before}{name}" + (f"[{seen[name]}]" if seen[name] > 1 else "")
            if mark == "{":
                blocks.append((f"{path}.", Counter()))
            else:
                flat[path] = " ".join(words[1:])
            words = []
    if words or len(blocks) > 1:
        raise ParseError("this is no nginx.conf: a block or a directive is not closed", line=text.count("\n") + 1)
    return flat
