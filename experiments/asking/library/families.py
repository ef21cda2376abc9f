"""Templates that differ in a choice or two, as one entry of the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.asking.library.catalogue import ExperimentTemplate, templates


@dataclass(frozen=True)
class Entry:
    """One line of the library: a template by itself, or the first of a family under the family's own title."""

    template: ExperimentTemplate
    title: str
    question: str
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Option:
    """A value of a choice, and the template that has it while its other choices are those of the one that is shown."""

    value: str
    template: ExperimentTemplate
    chosen: bool


@dataclass(frozen=True)
class Choice:
    name: str
    options: tuple[Option, ...]


def entries(found: Sequence[ExperimentTemplate]) -> list[Entry]:
    """The lines for these templates, in their order: of a family those that are among them."""
    lines: dict[str, Entry] = {}
    for one in found:
        if one.family is None:
            lines[one.name] = Entry(one, one.title, one.question)
        elif (key := f"family {one.family.title}") not in lines:
            members = [other for other in found if other.family and other.family.title == one.family.title]
            choices = tuple((name, _values(name, members)) for name in one.family.choices)
            lines[key] = Entry(_first(members), one.family.title, one.family.question, choices)
    return list(lines.values())


def choices_of(template: ExperimentTemplate) -> tuple[Choice, ...]:
    """What else may be chosen in place of this template's own; () for one without a family."""
    if template.family is None:
        return ()
    own = template.family.choices
    members = [one for one in templates() if one.family and one.family.title == template.family.title]
    by_choices = {tuple(one.family.choices.items()): one for one in members if one.family}
    return tuple(
        Choice(
            name,
            tuple(
                Option(value, by_choices[wanted], value == own[name])
                for value in _values(name, members)
                if (wanted := tuple({**own, name: value}.items())) in by_choices
            ),
        )
        for name in own
    )


def _first(members: Sequence[ExperimentTemplate]) -> ExperimentTemplate:
    """The one that is shown first: that of the first values of all choices."""
    return min(members, key=lambda one: tuple(_values(n, members).index(v) for n, v in _choices(one).items()))


def _values(name: str, members: Sequence[ExperimentTemplate]) -> tuple[str, ...]:
    return tuple(sorted({_choices(one)[name] for one in members}, key=_in_order))


def _in_order(value: str) -> tuple[bool, str]:
    """What is all of the others comes first."""
    return (" in turn" not in value, value)


def _choices(one: ExperimentTemplate) -> dict[str, str]:
    return one.family.choices if one.family else {}
