"""`bh mcp`: the tools of an installation for an assistant that starts programs: its lines go to `/mcp` and back."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from typing import Any, TextIO
from urllib.error import HTTPError, URLError
from urllib.request import Request, build_opener

from .connection import NoRedirects, Trouble, explain_text
from .login import login_of

_VERSION = "io.modelcontextprotocol/protocolVersion"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_AGAIN = {502, 503, 504}
_PAUSES_S = (0.5, 1.0, 2.0, 4.0)
_TIMEOUT_S = 60
_PARSE_ERROR, _INTERNAL_ERROR = -32700, -32603


class Proxy:
    """One conversation: JSON-RPC messages, a line each, sent to one installation as the owner of a token."""

    def __init__(self, url: str, token: str) -> None:
        if not url.startswith(("https://", "http://")):
            raise Trouble(f"The address begins with https:// or http://, not {url!r}.")
        self.url = url.rstrip("/").removesuffix("/api/v1") + "/mcp"
        self._token = token.strip()
        self._opener = build_opener(NoRedirects)
        self._version = ""

    def answer(self, line: str) -> str | None:
        """The line that comes back; None for a message that nobody answers."""
        try:
            message = json.loads(line)
        except ValueError as error:
            return _error(None, _PARSE_ERROR, f"This is not JSON: {error}.")
        asked = message if isinstance(message, dict) else {}
        try:
            text = self._post(line.encode(), self._headers(asked))
            said = json.loads(text) if text else None
        except (Trouble, ValueError) as trouble:
            waits = "id" in asked or not isinstance(message, dict)
            return _error(asked.get("id"), _INTERNAL_ERROR, str(trouble)) if waits else None
        if asked.get("method") == "initialize" and isinstance(said, dict):
            self._version = str((said.get("result") or {}).get("protocolVersion", ""))
        return None if said is None else json.dumps(said)

    def _headers(self, asked: Mapping[str, Any]) -> dict[str, str]:
        """What HTTP repeats of a message: its version, and since 2026-07-28 its method and whom it names."""
        params = asked.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(_VERSION) if isinstance(meta, dict) else None
        if not isinstance(version, str):
            return {"MCP-Protocol-Version": self._version} if self._version else {}
        method = str(asked.get("method", ""))
        found = {"MCP-Protocol-Version": version, "Mcp-Method": method}
        name = params.get(_NAMED.get(method, ""))
        return {**found, "Mcp-Name": name} if isinstance(name, str) else found

    def _post(self, data: bytes, headers: Mapping[str, str]) -> str:
        """The body of the answer, also of a refusal by the protocol. Trouble when there is none."""
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                raise Trouble(f"{name} cannot be sent: {value[:80]!r}.")
        sent = {
            **headers,
            "Authorization": "Bearer " + self._token,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "User-Agent": "benchhub-client/1.0.0 mcp",
        }
        for pause_s in (*_PAUSES_S, None):
            try:
                request = Request(self.url, data=data, headers=sent, method="POST")  # noqa: S310 - checked above
                with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                    return str(answer.read().decode())
            except HTTPError as error:
                text = _body_of(error)
                if '"jsonrpc"' in text:
                    return text
                if error.code not in _AGAIN or pause_s is None:
                    raise Trouble(explain_text(error.code, self.url, text.encode(), "")) from error
            except (URLError, HTTPException, OSError) as error:
                if pause_s is None:
                    raise Trouble(f"no connection to {self.url} ({getattr(error, 'reason', error)})") from error
            time.sleep(pause_s)
        raise AssertionError("the last try either answers or raises")


def serve(lines: Iterable[str] | None = None, out: TextIO | None = None) -> int:
    """Answer every line of standard input on standard output, until it ends. Trouble without address and token."""
    proxy = Proxy(*login_of(None, None))
    out = out or sys.stdout
    for line in sys.stdin if lines is None else lines:
        if line.strip() and (said := proxy.answer(line)) is not None:
            print(said, file=out, flush=True)
    return 0


def _body_of(error: HTTPError) -> str:
    """What the refusal says; nothing when the connection ends before that."""
    try:
        return error.read().decode(errors="replace")
    except (HTTPException, OSError):
        return ""


def _error(message_id: object, code: int, text: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": text}})
