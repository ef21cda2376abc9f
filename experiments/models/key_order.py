"""The order in which the keys of a document were written: PostgreSQL keeps a document as jsonb, which loses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any


def keys_of(node: Any) -> list[str]:
    """The keys of all mappings in the JSON value: those of the outer one, then those of what stands in it."""
    keys = list(node) if isinstance(node, Mapping) else []
    return [*keys, *(key for child in _children(node) for key in keys_of(child))]


def in_order(node: Any, keys: list[str]) -> Any:
    """The JSON value with its mappings in the order of `keys_of`; as it is where these are not its keys."""
    try:
        return _ordered(node, iter(keys))
    except KeyError:
        return node


def _ordered(node: Any, keys: Iterator[str]) -> Any:
    if isinstance(node, Mapping):
        own = list(islice(keys, len(node)))
        if len(set(own)) != len(node):
            raise KeyError(own)
        return {key: _ordered(node[key], keys) for key in own}
    return [_ordered(child, keys) for child in node] if isinstance(node, list) else node


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, Mapping):
        yield from node.values()
    elif isinstance(node, list | tuple):
        yield from node
