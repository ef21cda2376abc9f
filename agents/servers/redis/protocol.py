"""Answers of Redis in its own protocol, RESP2: https://redis.io/docs/latest/develop/reference/protocol-spec/."""

from __future__ import annotations

from collections.abc import Iterator

from agents.base.errors import ParseError

Answer = str | int | None | tuple["Answer", ...]


class Refused(ParseError):
    """Redis answered that it did not do it."""


def answers(output: bytes) -> tuple[Answer, ...]:
    """All answers in the bytes, in their order; an error that Redis answered is its text with `-` before it.

    ParseError when the bytes end inside one, or are none.
    """
    found: list[Answer] = []
    at = 0
    while at < len(output):
        answer, at = _answer(output, at)
        found.append(answer)
    return tuple(found)


def pairs(answer: Answer) -> Iterator[tuple[str, str]]:
    """Names and values of an answer that is a flat list of both, as CONFIG GET gives it; Refused when it is no list."""
    if not isinstance(answer, tuple):
        raise Refused(f"Redis answered {answer!s:.200} where a list was asked for")
    for name, value in zip(answer[::2], answer[1::2], strict=False):
        yield str(name), "" if value is None else str(value)


def _answer(data: bytes, at: int) -> tuple[Answer, int]:
    end = data.find(b"\r\n", at)
    if end < 0:
        raise ParseError("the answer of Redis was cut")
    kind, text, begin = data[at : at + 1], data[at + 1 : end].decode("utf-8", "replace"), end + 2
    if kind == b"+":
        return text, begin
    if kind == b"-":
        return f"-{text}", begin
    if kind not in (b":", b"$", b"*") or not text.lstrip("-").isdigit():
        raise ParseError(f"{data[at:end][:100]!r} is no answer of Redis")
    number = int(text)
    if kind == b":":
        return number, begin
    if number < 0:
        return None, begin
    if kind == b"*":
        items: list[Answer] = []
        for _ in range(number):
            item, begin = _answer(data, begin)
            items.append(item)
        return tuple(items), begin
    if data[begin + number : begin + number + 2] != b"\r\n":
        raise ParseError("the answer of Redis was cut")
    return data[begin : begin + number].decode("utf-8", "replace"), begin + number + 2
