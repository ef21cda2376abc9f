"""Control characters of hosts, tools and people never leave: a terminal would obey them (ESC, BEL, CSI).

What a host said is stored as it was, because steps put files back from it. It is shown with a picture of each
character in its place (U+2400 and on): on pages, in texts of the API and in event streams. Files that are saved to a
disk stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import cast

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from benchhub.answering import Answer, AnswerMiddleware, then

_RAW = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
_ESCAPED = re.compile(rb"(?<!\\)((?:\\\\)*)\\(?:u00(0[0-8bcBCeEfF]|1[0-9a-fA-F]|7[fF]|[89][0-9a-fA-F])|([bf]))")
"""As JSON writes them: \\u001b, \\b, \\f. Two backslashes are a backslash and no beginning."""

_JSON = ("application/json", "text/event-stream", "application/problem+json", "application/openapi+json")
_KEPT = ("Content-Disposition", "Content-Encoding")


class ControlCharacterMiddleware(AnswerMiddleware):
    """Puts pictures in the place of control characters in every text that is shown."""

    def __call__(self, request: HttpRequest) -> Answer:
        return then(self.get_response(request), shown)


def shown(response: HttpResponseBase) -> HttpResponseBase:
    """The response without control characters when it is a text to be shown."""
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if not (kind.startswith("text/") or kind in _JSON) or any(name in response.headers for name in _KEPT):
        return response
    is_json = kind in _JSON
    if isinstance(response, StreamingHttpResponse):
        if response.is_async:
            pieces = cast("AsyncIterator[bytes]", response.streaming_content)
            response.streaming_content = _later(pieces, is_json)
        else:
            response.streaming_content = _each(cast("Iterable[bytes]", response.streaming_content), is_json)
    elif isinstance(response, HttpResponse):
        plain = without_controls(response.content, is_json=is_json)
        if plain != response.content:
            response.content = plain
            if "Content-Length" in response.headers:
                response.headers["Content-Length"] = str(len(plain))
    return response


def without_controls(text: bytes, *, is_json: bool = False) -> bytes:
    """UTF-8 text with pictures of control characters; those that JSON escapes, too, where it is JSON."""
    if _RAW.search(text):
        text = _RAW.sub(_picture, text)
    return _ESCAPED.sub(_escaped_picture, text) if is_json and b"\\" in text else text


def _picture(found: re.Match[bytes]) -> bytes:
    return _of(found[0][-1]).encode()


def _escaped_picture(found: re.Match[bytes]) -> bytes:
    code = int(found[2], 16) if found[2] else {b"b": 8, b"f": 12}[found[3]]
    return found[1] + _of(code).encode()


def _of(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def _each(pieces: Iterable[bytes], is_json: bool) -> Iterator[bytes]:
    for piece in pieces:
        yield without_controls(piece, is_json=is_json)


async def _later(pieces: AsyncIterator[bytes], is_json: bool) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield without_controls(piece, is_json=is_json)
