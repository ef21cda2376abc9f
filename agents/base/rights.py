"""What only an admin may make a host do: each kind says it of its own fields, and what is not said is an admin's.

A document is read by many interpreters on a host: a shell, Lua, JavaScript, a JVM, the server under test. So every kind
of driver, step and server has `Rights`. Numbers, switches and choices are open to editors, since they are typed; of
every field with text the kind says either that the host passes it on as data, or up to where a value is harmless.
A field that a kind forgets is reserved as soon as somebody sets it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from agents.base.model import Frozen

FORGOTTEN = "nobody has said what a host does with it"


@dataclass(frozen=True)
class Gate:
    """A field of which editors may set some values only.

    `admin` names the others, for messages and for the table in docs/security.md. `harmless` gets the whole part, as
    what a text does may depend on a second field (where a file lies and what is in it).
    """

    admin: str
    harmless: Callable[[Any], bool]


@dataclass(frozen=True)
class Rights:
    """What a kind lets its author make a host do.

    `does`: in a few words, what anybody's document may do. `whole`: why only an admin may use the kind at all, "" when
    others may. `data`: fields whose text reaches no interpreter. `free`: fields that whoever launches may fill in where
    the kind is an admin's whole.
    """

    does: str
    data: tuple[str, ...] = ()
    gates: Mapping[str, Gate] = field(default_factory=dict)
    whole: str = ""
    free: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reserved:
    """A field whose value only an admin may choose. `value` is what counts of it, to be compared with an admin's."""

    field: str
    why: str
    value: str


class Guarded(Frozen):
    """A part of a document that a host interprets."""

    rights: ClassVar[Rights]

    def reserved(self) -> tuple[Reserved, ...]:
        """What in it only an admin may save, or launch with values of their own."""
        return tuple(self._reserved())

    def _reserved(self) -> Iterator[Reserved]:
        if self.rights.whole:
            said = self.model_dump_json(by_alias=True, exclude=set(self.rights.free))
            yield Reserved("kind", self.rights.whole, said)
            return
        for name, about in type(self).model_fields.items():
            gate = self.rights.gates.get(name)
            if gate is not None:
                if not gate.harmless(self):
                    yield Reserved(name, gate.admin, self._texts())
            elif name not in unspoken(type(self)):
                continue
            elif getattr(self, name) != about.get_default(call_default_factory=True):
                yield Reserved(name, FORGOTTEN, self._texts())

    def _texts(self) -> str:
        """All fields that have a gate: what one of them does may depend on the others."""
        return self.model_dump_json(by_alias=True, include={*self.rights.gates, *unspoken(type(self))})


def unspoken(kind: type[Guarded]) -> list[str]:
    """The fields with text of which the kind does not say what a host does with them."""
    spoken = {"kind", *kind.rights.data, *kind.rights.gates}
    return [name for name, about in kind.model_fields.items() if name not in spoken and not _is_typed(about.annotation)]


def _is_typed(annotation: Any) -> bool:
    """Whether values of this type are numbers, switches or choices, however they are nested."""
    if annotation in (int, float, bool, None, types.NoneType, Ellipsis):
        return True
    origin = get_origin(annotation)
    if origin is Literal:
        return True
    if hasattr(annotation, "__metadata__"):
        return _is_typed(get_args(annotation)[0])
    return origin in (Union, types.UnionType, tuple, list) and all(map(_is_typed, get_args(annotation)))
