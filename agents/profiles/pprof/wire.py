"""The wire format of protocol buffers, as far as pprof has it: numbers, and texts or messages with their length.

Own, because pprof needs five messages of it: the library would bring a compiler's output, and a tree of objects for
the whole message before anything can be refused. Source: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agents.base.errors import ParseError

Value = int | memoryview
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_MORE, _BITS = 0x80, 0x7F
_WIDTH = {FIXED64: 8, FIXED32: 4}
_MAX_SHIFT = 63
_MASK = (1 << 64) - 1


def fields(message: memoryview) -> Iterator[tuple[int, Value]]:
    """The fields of a message in their order: number, and its value as a number or as bytes. Raises ParseError."""
    return ((name, value) for name, value, _ in placed(message))


def placed(message: memoryview) -> Iterator[tuple[int, Value, int]]:
    """The same with the place of the message at which each field ends: what is kept of millions of fields."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        kind = key & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value, at
            continue
        if kind == LENGTH:
            width, at = _varint(message, at)
        elif kind in _WIDTH:
            width = _WIDTH[kind]
        else:
            raise _broken(f"a field of the kind {kind}")
        if width > end - at:
            raise _broken(f"a field of {width} bytes where {end - at} are left")
        part = message[at : at + width]
        at += width
        yield key >> 3, part if kind == LENGTH else int.from_bytes(part, "little"), at


def numbers(value: Value) -> Iterable[int]:
    """The numbers of a repeated field: one, or several packed together. Raises ParseError."""
    if isinstance(value, int):
        return (value,)
    packed = bytes(value)
    return packed if packed.isascii() else _unpacked(value)  # below 128 a number is its byte


def number(value: Value) -> int:
    """The value of a field that is a number. Raises ParseError."""
    if not isinstance(value, int):
        raise _broken("a text where a number is due")
    return value


def signed(value: int) -> int:
    """A number of 64 bits as the int64 that was meant."""
    return value - (1 << 64) if value >> 63 else value


def nested(value: Value) -> memoryview:
    """The bytes of a field that is a text or a message. Raises ParseError."""
    if isinstance(value, int):
        raise _broken("a number where a message is due")
    return value


def _unpacked(value: memoryview) -> list[int]:
    """The same as `_varint` for each, written out: a profile has millions of them."""
    found = []
    current = shift = 0
    for byte in value:
        if byte & _MORE:
            current |= (byte & _BITS) << shift
            shift += 7
            if shift > _MAX_SHIFT:
                raise _broken("a number of more than ten bytes")
        else:
            found.append((current | byte << shift) & _MASK)
            current = shift = 0
    if shift:
        raise _broken("an end in the middle of a number")
    return found


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    found = shift = 0
    try:
        while (byte := message[at]) & _MORE:
            found |= (byte & _BITS) << shift
            shift += 7
            at += 1
            if shift > _MAX_SHIFT:
                raise _broken("a number of more than ten bytes")
    except IndexError:
        raise _broken("an end in the middle of a number") from None
    return (found | byte << shift) & _MASK, at + 1


def _broken(what: str) -> ParseError:
    return ParseError(f"the profile is damaged: it has {what}", hint="Is the file whole? Give it as it was written.")


def encoded(value: int) -> bytes:
    """A number of at most 64 bits as it stands in a message."""
    value &= _MASK
    found = bytearray()
    while value > _BITS:
        found.append(value & _BITS | _MORE)
        value >>= 7
    found.append(value)
    return bytes(found)


def number_field(field: int, value: int) -> bytes:
    """A field with a number; nothing for 0, which is what a missing one means."""
    return encoded(field << 3 | VARINT) + encoded(value) if value else b""


def bytes_field(field: int, value: bytes) -> bytes:
    """A field with a text, a message or packed numbers."""
    return encoded(field << 3 | LENGTH) + encoded(len(value)) + value
