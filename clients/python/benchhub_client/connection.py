"""The connection to one installation, which outlives a restart of it and a bad moment of the network.

`benchhub-ci` has it as well, in its one file for any Python since 3.8: standard library only, and no other module.
"""

from __future__ import annotations

import html
import json
import random
import re
import ssl
import time
import uuid
from http.client import HTTPException
from typing import Any, Callable  # noqa: UP035 - Python 3.8
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
TOO_MANY = 429
RETRIED_STATUS = {408, 425, TOO_MANY, 500, 502, 503, 504}
ANSWER_TIMEOUT_S = 30
FILE_TIMEOUT_S = 300
WAIT_S = 50
"""How long one request waits on the server for an end: proxies give up on an answer after 60 s."""
ANYTHING = "*/*"
RUBBISH_PATIENCE_S = 20
TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
PAGE_BYTES = 65_536  # of a page as much as holds its title
SECRETS = re.compile(r"/(tokens|invitations(/[^/]+/resend)?|shares|webhooks(/[^/]+/secret)?)")
"""Where a POST makes a secret that its answer shows once: no key brings that answer back."""
HINTS = {401: "The token is unknown here; is BENCHHUB_TOKEN whole, not expired, and of this installation?"}


class Trouble(Exception):
    """Nothing that waiting would put right; the message says what to do.

    `status` is that of HTTP where BenchHub has refused something, else 0.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NoRedirects(HTTPRedirectHandler):
    """A redirect would carry the token to another place. A file may be elsewhere, under a link that wants no token."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request:
        if req.get_header("Accept") == ANYTHING and (newurl.startswith("https://") or req.type == "http"):
            agent = req.get_header("User-agent", "")
            return Request(newurl, headers={"Accept": ANYTHING, "User-Agent": agent})  # noqa: S310 - urllib has checked
        raise Trouble(f"{req.full_url} redirects to {newurl}; give that address as --url.")


class Again(Exception):
    """Worth another try; `after_s` when the server said how long to wait, `patience_s` when less than usual will do.

    `untouched`: the server has certainly not carried the request out.
    """

    def __init__(
        self,
        message: str,
        after_s: float | None = None,
        patience_s: float = float("inf"),
        *,
        untouched: bool = False,
    ) -> None:
        super().__init__(message)
        self.after_s, self.patience_s, self.untouched = after_s, patience_s, untouched


class Api:
    """Talks to one installation; tries again, with growing pauses, until `patience_s` is over.

    `agent` is what the server's log calls it, `say` is told of each pause.
    """

    def __init__(self, url: str, token: str, patience_s: float, agent: str, say: Callable[[str], None]) -> None:
        if not url.startswith(("https://", "http://")):
            raise Trouble(f"The address begins with https:// or http://, not {url!r}.")
        token = token.strip()  # secrets are often stored with a line end
        if not token.isascii() or not token.isprintable():
            raise Trouble("The token has characters that no token has; is it whole?")
        url = url.rstrip("/")
        self.base = url if url.endswith("/api/v1") else url + "/api/v1"
        self.token = token
        self.patience_s = patience_s
        self.agent = agent
        self.say = say
        self.opener = build_opener(NoRedirects)
        self.replayed = False
        """Whether the last answer is that of an earlier request with the same key."""

    def get(self, path: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        return self._call("GET", path, None, {}, timeout_s)

    def download(self, path: str, timeout_s: float = FILE_TIMEOUT_S) -> bytes:
        """A file as it is."""
        found = self._call("GET", path, None, {"Accept": ANYTHING}, timeout_s)
        if not isinstance(found, bytes):
            raise Trouble(f"{self.base}{path} is no file.")
        return found

    def post(self, path: str, body: dict[str, Any], key: str = "") -> Any:
        """`key` makes trying again safe: what was started is not started twice. Without one this call has its own.

        What makes a secret takes no key (tokens, invitations, links, webhooks), so it is tried again only when it was
        not carried out; Trouble when that is not certain.
        """
        return self._call("POST", path, body, {"Idempotency-Key": key or uuid.uuid4().hex}, ANSWER_TIMEOUT_S)

    def put(self, path: str, body: dict[str, Any]) -> Any:
        """Store it as it is given; trying again stores the same."""
        return self._call("PUT", path, body, {}, ANSWER_TIMEOUT_S)

    def patch(self, path: str, body: dict[str, Any]) -> Any:
        """Change the fields that are given; trying again gives them the same values."""
        return self._call("PATCH", path, body, {}, ANSWER_TIMEOUT_S)

    def delete(self, path: str) -> Any:
        """Remove it. Trouble when it is not there, as after an answer that was lost on its way."""
        return self._call("DELETE", path, None, {}, ANSWER_TIMEOUT_S)

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None, headers: dict[str, str], timeout_s: float
    ) -> Any:
        try:
            data = None if body is None else json.dumps(body, allow_nan=False).encode()
        except ValueError as error:
            raise Trouble("A number that is not finite cannot be sent: JSON has none.") from error
        began = time.monotonic()
        pause_s = 0.5
        once = method == "POST" and SECRETS.fullmatch(path.partition("?")[0])
        while True:
            try:
                return self._once(method, path, data, headers, timeout_s)
            except Again as again:
                if once and not again.untouched:
                    raise Trouble(
                        f"{again}. It may have been carried out, and its secret is shown once only: look with GET "
                        f"/{once[1].partition('/')[0]} before you try again, and remove what nobody has the secret of."
                    ) from again
                wait_s = again.after_s if again.after_s is not None else pause_s * random.uniform(0.5, 1.5)  # noqa: S311 - spreads clients
                if time.monotonic() + wait_s > began + min(self.patience_s, again.patience_s):
                    raise Trouble(f"gave up after {time.monotonic() - began:.0f} s: {again}") from again
                self.say(f"{again}; trying again in {wait_s:.1f} s")
                time.sleep(wait_s)
                pause_s = min(pause_s * 2, 30)

    def _once(self, method: str, path: str, data: bytes | None, headers: dict[str, str], timeout_s: float) -> Any:
        request = Request(self.base + path, data=data, method=method)  # noqa: S310 - checked in main
        request.add_header("Authorization", "Bearer " + self.token)
        request.add_header("Accept", "application/json")
        request.add_header("User-Agent", self.agent)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name, value)
        try:
            with self.opener.open(request, timeout=timeout_s) as answer:
                text = answer.read()
                content_type = answer.headers.get("Content-Type", "")
                self.replayed = answer.headers.get("Idempotency-Replayed") == "true"
                if headers.get("Accept") == ANYTHING and "html" not in content_type.lower():
                    return text  # BenchHub sends no file as a page, whatever is in it
                page = page_in(text, content_type)
                if page:  # the same page would come again
                    raise Trouble(not_benchhub(answer.status, request.full_url, page))
                return shown(json.loads(text.decode()))
        except HTTPError as error:
            if error.code in RETRIED_STATUS:
                after_s = error.headers.get("Retry-After", "")
                wait_s = float(after_s) if after_s.isdigit() else None
                raise Again(explain(error), wait_s, untouched=error.code == TOO_MANY) from error
            raise Trouble(explain(error), error.code) from error
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                why = reason.verify_message
                raise Trouble(f"{self.base}: {why}; name the file of its authority in SSL_CERT_FILE.") from error
            if isinstance(reason, ssl.SSLError) and "VERSION" in (reason.reason or ""):
                raise Trouble(f"{self.base} does not speak HTTPS; does it begin with http://?") from error
            # urllib's own error is for a request that could not be sent whole; a lost answer is another one.
            raise Again(f"no connection to {self.base} ({reason})", untouched=isinstance(error, URLError)) from error
        except ValueError as error:
            raise Again(f"the answer is not JSON; is {self.base} BenchHub?", None, RUBBISH_PATIENCE_S) from error


def shown(value: Any) -> Any:
    """The answer without what a terminal would obey (ESC, BEL, CSI), whichever text of a host it comes from."""
    if isinstance(value, str):
        return CONTROLS.sub("\ufffd", value)
    if isinstance(value, list):
        return [shown(one) for one in value]
    return {shown(key): shown(one) for key, one in value.items()} if isinstance(value, dict) else value


def page_in(text: bytes, content_type: str) -> str:
    """What a web page calls itself; empty for an answer that is none."""
    begin = text[:PAGE_BYTES].decode(errors="replace").lstrip("\ufeff \t\r\n")
    if not begin.startswith("<") and "html" not in content_type.lower():
        return ""
    title = TITLE.search(begin)
    words = " ".join(str(shown(html.unescape(title[1]))).split()) if title else ""
    return f'a web page titled "{words[:100]}"' if words else "a web page without a title"


def not_benchhub(status: int, url: str, page: str) -> str:
    return (
        f"HTTP {status} with {page or 'no answer of an API'}, and not from BenchHub: "
        f"is {url} right, or does a proxy or its sign-in page stand between?"
    )


def explain(error: HTTPError) -> str:
    """What a problem+json answer says, or what the page is that came in its place."""
    text = b""
    try:
        text = error.read()
    except (OSError, HTTPException):
        pass
    return explain_text(error.code, error.url or "the address", text, error.headers.get("Content-Type", ""))


def explain_text(status: int, url: str, text: bytes, content_type: str) -> str:
    """The same of an answer that was read already."""
    try:
        problem = shown(json.loads(text.decode()))
        detail = problem["detail"]
    except (ValueError, KeyError, TypeError):
        return not_benchhub(status, url, page_in(text, content_type))
    field = problem.get("field")
    said = f"HTTP {status}: {detail}" + (f" (field: {field})" if field else "")
    return f"{said} {HINTS[status]}" if status in HINTS else said
