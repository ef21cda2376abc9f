"""An OpenID Connect provider on the loopback that lies as a test wants it to."""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt

LEFT_OUT = object()
"""As a claim's value: the claim is not there."""


class FalseProvider:
    """Right in every point unless a test changes what it says."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.description: dict[str, Any] = {
            "issuer": address,
            "authorization_endpoint": f"{address}/authorize",
            "token_endpoint": f"{address}/token",
            "userinfo_endpoint": f"{address}/userinfo",
            "jwks_uri": f"{address}/keys",
        }
        self.userinfo: dict[str, Any] = {
            "sub": "g-1",
            "preferred_username": "grace",
            "email": "grace@example.org",
            "email_verified": True,
        }
        self.claims: dict[str, Any] = {
            "iss": address,
            "aud": "benchhub",
            "sub": "g-1",
            "iat": int(time.time()),
            "exp": int(time.time()) + 6 * 3600,
        }
        self.token: dict[str, Any] = {"access_token": "a", "token_type": "Bearer"}
        self.sends_id_token = True

    def say(self, part: str, changes: Mapping[str, Any]) -> None:
        """Change claims of the ID token, of userinfo, the token answer or the provider's description."""
        said: dict[str, Any] = getattr(self, part)
        said.update(changes)
        for name in [name for name, value in said.items() if value is LEFT_OUT]:
            del said[name]

    def answer(self, path: str) -> Any:
        if path.endswith("/.well-known/openid-configuration"):
            return self.description
        if path.startswith("/token"):
            id_token = {"id_token": jwt.encode(self.claims, "x" * 32)} if self.sends_id_token else {}
            return self.token | id_token
        return self.userinfo


@contextmanager
def false_provider() -> Iterator[FalseProvider]:
    """A provider that answers while the context is open."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(provider.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            assert form["code_verifier"], "without PKCE a code that somebody else got could be used here"
            self.do_GET()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = FalseProvider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
