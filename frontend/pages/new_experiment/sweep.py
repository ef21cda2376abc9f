"""A sweep: the values that were typed for one or two factors, every one checked before a variant is named after it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product

from django import forms

from agents.steps.recipe import RecipeDocument, Value
from experiments.registry.documents.own_load import OWN_LOAD
from frontend.shared.forms.parameters import parameter_field, parameter_text

MAX_ROWS = 50
INPUTS = ("sweep", "sweep_values", "sweep_2", "sweep_2_values")
_LABELS = {"offered_rate_rps": "rate", "sut": "server"}


@dataclass(frozen=True)
class Sweep:
    """The fields of each variant, at most MAX_ROWS of the `count` that there would be; none when there is a problem."""

    variants: list[dict[str, str]]
    count: int
    problem: str
    typed: Mapping[str, str]


def read_sweep(
    posted: Mapping[str, str],
    fields: Mapping[str, forms.Field],
    document: RecipeDocument | None,
    hosts: Mapping[str, str],
) -> Sweep:
    """The sweep that was typed, over a parameter of the recipe, a load of its own (`fields`) or the hosts by name."""
    known = {name: fields[name] for name in OWN_LOAD} | {"sut": _server_field(hosts)}
    known |= {name: parameter_field(name, one) for name, one in (document.parameters if document else {}).items()}
    factors: dict[str, list[str]] = {}
    problems: list[str] = []
    for one in ("sweep", "sweep_2"):
        name, typed = posted.get(one, ""), posted.get(f"{one}_values", "")
        if name in factors and typed.strip():
            problems.append(f"{label(name)} is swept twice: choose another second parameter.")
        elif name in known and typed.strip():
            factors[name], wrong = _values(known[name], typed)
            problems += [f"{label(name)} {problem}" for problem in wrong]
    count = 1
    for values in factors.values():
        count *= len(values)
    pairs = list(islice(product(*factors.values()), MAX_ROWS)) if factors and not problems else []
    variants = [_variant(dict(zip(factors, pair, strict=True)), hosts) for pair in pairs]
    problem = f"No variant was made. {' '.join(problems)}" if problems else ""
    return Sweep(variants, count, problem, sweep_inputs(posted))


def sweep_inputs(posted: Mapping[str, str]) -> dict[str, str]:
    """What stands in the inputs of a sweep; nothing where no values were typed."""
    inputs = {name: posted.get(name, "") for name in INPUTS}
    return inputs if any(inputs[name].strip() for name in INPUTS if name.endswith("values")) else {}


def label(factor: str) -> str:
    """What a variant's name calls it."""
    return _LABELS.get(factor, factor.replace("_", " "))


def contradiction(name: str, fields: Mapping[str, forms.Field], values: Mapping[str, Value]) -> str:
    """The number in a variant's name that it does not run with, as a sentence; "" where name and values agree."""
    for part in name.split(", "):
        for factor, value in values.items():
            said = part.removeprefix(f"{label(factor)} ")
            field = fields[factor]
            if said == part or not isinstance(field, forms.IntegerField):  # of which FloatField is one
                continue
            try:
                number = field.to_python(said)
            except forms.ValidationError:
                continue
            if number != value:
                return f"The name says {part}, but {label(factor)} is {parameter_text(value)}: change one of them."
    return ""


def _variant(chosen: Mapping[str, str], hosts: Mapping[str, str]) -> dict[str, str]:
    """The fields of a variant with these values, and its name."""
    words = ", ".join(f"{label(name)} {text}" for name, text in chosen.items())
    own = {name if name in OWN_LOAD else f"p_{name}": text for name, text in chosen.items() if name != "sut"}
    return {"name": words} | own | ({"sut": hosts[chosen["sut"]]} if "sut" in chosen else {})


def _values(field: forms.Field, typed: str) -> tuple[list[str], list[str]]:
    """The values as their input shows them, each once, and what is wrong with the others."""
    found, wrong = [], []
    try:
        for text in _words(typed):
            try:
                found.append(parameter_text(field.clean(text)))
            except forms.ValidationError as error:
                wrong.append(f"{text}: {' '.join(error.messages)}")
    except ValueError:
        wrong.append("has a quotation mark without its end.")
    return list(dict.fromkeys(found)), wrong


def _words(typed: str) -> Iterator[str]:
    """The values between blanks, semicolons, and commas before a blank; quotation marks keep blanks together.

    A comma inside a word belongs to it: `0-1,4` is one set of CPUs. ValueError: a quotation mark has no end.
    """
    lexer = shlex.shlex(typed, posix=True)
    lexer.whitespace += ";"
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    for word in lexer:
        if word.rstrip(",") or not word:
            yield word.rstrip(",") or '""'


def _server_field(hosts: Mapping[str, str]) -> forms.Field:
    unknown = f"no server of the team has this name; there is: {', '.join(hosts)}."
    return forms.ChoiceField(choices=[(name, name) for name in hosts], error_messages={"invalid_choice": unknown})
