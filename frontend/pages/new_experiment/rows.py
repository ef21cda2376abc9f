"""The variants of an experiment as rows of a form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.forms import BoundField
from django.http import QueryDict

from experiments.registry.documents.own_load import OWN_LOAD
from frontend.pages.new_experiment.forms import VariantForm
from frontend.pages.new_experiment.sweep import MAX_ROWS, read_sweep, sweep_inputs
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.model_fields import show_scalar

SHOWN = ("application", "recipe", "sut", "drivers", *OWN_LOAD)
"""The fields of a variant beside its name and its parameters."""


@dataclass(frozen=True)
class Cell:
    """A field of one variant in the table; None where it has no such parameter or member."""

    field: BoundField | None

    @property
    def input(self) -> str:
        """The input, named by its column for those who do not see the heading."""
        return self.field.as_widget(attrs={"aria-label": str(self.field.label)}) if self.field else ""


@dataclass(frozen=True)
class Rows:
    """The variants of a form: row id -> its form, and which one is the baseline.

    What all of them have in common stands once, in the inputs of the first row: a row that does not send a field has
    the first one's. The fields in which they differ are the `columns` of a table, with those in `wanted` beside them.
    """

    forms: dict[str, VariantForm]
    baseline: str
    note: str = ""
    """What was not done."""
    sweep: Mapping[str, str] = field(default_factory=dict)
    """What was typed for a sweep that could not be made."""
    wanted: Sequence[str] = ()

    @property
    def first(self) -> VariantForm:
        return next(iter(self.forms.values()))

    @cached_property
    def columns(self) -> list[str]:
        """What differs between the variants, and what somebody asked for, in the order of the form."""
        names = [*SHOWN[:4], *self._members(), *self._parameters(), *SHOWN[4:]]
        return [name for name in names if name in self.wanted or self._differs(name)]

    @property
    def headings(self) -> list[str]:
        return [
            next(str(form[name].label) for form in self.forms.values() if name in form.fields) for name in self.columns
        ]

    @property
    def common(self) -> list[BoundField]:
        """What all variants share, without the parameters."""
        names = [*SHOWN[:4], *(field.name for field in self.first.member_fields), *SHOWN[4:]]
        return [self.first[name] for name in names if name not in self.columns]

    @property
    def common_parameters(self) -> list[BoundField]:
        return [one for one in self.first.parameter_fields if one.name not in self.columns]

    @property
    def choices(self) -> list[tuple[str, str]]:
        """What else could differ: name and label."""
        return [(one.name, str(one.label)) for one in (*self.common, *self.common_parameters)]

    @property
    def table(self) -> list[tuple[str, VariantForm, bool, list[Cell]]]:
        """Each variant with its cells."""
        return [
            (
                row,
                form,
                row == self.baseline,
                [Cell(form[name] if name in form.fields else None) for name in self.columns],
            )
            for row, form in self.forms.items()
        ]

    def _members(self) -> list[str]:
        return list(dict.fromkeys(one.name for form in self.forms.values() for one in form.member_fields))

    def _parameters(self) -> list[str]:
        return list(dict.fromkeys(one.name for form in self.forms.values() for one in form.parameter_fields))

    def _differs(self, name: str) -> bool:
        if any(name not in form.fields for form in self.forms.values()):
            return True
        return len({_shown(form[name].value()) for form in self.forms.values()}) > 1

    def __iter__(self) -> Iterator[tuple[str, VariantForm, bool]]:
        return iter([(row, form, row == self.baseline) for row, form in self.forms.items()])

    def are_valid(self) -> bool:
        """Whether every row is; all of them are read, so that all errors are shown."""
        return not [row for row, form in self.forms.items() if not form.is_valid()] and not self.sweep


def bound_rows(choices: TeamChoices, posted: QueryDict) -> Rows:
    """The rows as they were sent. They are not valid while values of a sweep are typed of which no variant was made."""
    rows = _row_ids(posted)
    whole = _with_common(posted, rows)
    forms = {row: VariantForm(choices, whole, prefix=f"v{row}") for row in rows}
    sweep = sweep_inputs(posted)
    note = (
        "Press “Make the variants” first, or empty the values of the sweep: they are no variants yet." if sweep else ""
    )
    return Rows(forms, _baseline(posted, list(forms)), note, sweep, _wanted(posted))


def changed_rows(choices: TeamChoices, posted: QueryDict) -> Rows:
    """The rows after `add`, `copy=<row>`, `remove=<row>` or `vary=<field>`, with all that was typed and no error."""
    rows = _row_ids(posted)
    values = _typed(posted, rows)
    if removed := posted.get("remove"):
        rows = [row for row in rows if row != removed] or rows
    copied = posted.get("copy") or (rows[-1] if "add" in posted else "")
    if copied in rows and len(rows) < MAX_ROWS:
        new = str(max(map(int, rows)) + 1)
        values[new] = values[copied] | {"name": ""}
        rows.insert(rows.index(copied) + 1, new)
    forms = {row: VariantForm(choices, prefix=f"v{row}", initial=values[row]) for row in rows}
    return Rows(forms, _baseline(posted, rows), wanted=_wanted(posted))


def swept_rows(choices: TeamChoices, posted: QueryDict) -> Rows:
    """The baseline once per value of `sweep_values`, each with that value of the recipe's parameter `sweep`.

    `sweep` may also be the offered rate, the connections or users, or the server host by name. With `sweep_2` and
    `sweep_2_values` it is once per pair of values. Nothing changes when the baseline's recipe has no such parameter,
    when no value is given, or when a value is none that fits: the note says which, and what was typed stays.
    """
    rows = _row_ids(posted)
    values, source = _typed(posted, rows), _baseline(posted, rows)
    document = choices.recipe_document(values[source].get("recipe", ""))
    sweep = read_sweep(posted, VariantForm.base_fields, document, choices.suts_by_name())
    note = sweep.problem
    if sweep.variants:
        if sweep.count > MAX_ROWS:
            note = f"These are {sweep.count} variants; an experiment has at most {MAX_ROWS}, so the last are left out."
        values = {str(row): values[source] | fields for row, fields in enumerate(sweep.variants)}
        source = "0"
    forms = {row: VariantForm(choices, prefix=f"v{row}", initial=initial) for row, initial in values.items()}
    return Rows(forms, source, note, {} if sweep.variants else sweep.typed)


def sweepable(rows: Rows) -> list[str]:
    """The parameters that a sweep can vary: those of the baseline's recipe."""
    return sorted(rows.forms[rows.baseline].parameters)


def _typed(posted: QueryDict, rows: list[str]) -> dict[str, dict[str, Any]]:
    """What was typed into each row, and the list of its driver hosts."""
    whole = _with_common(posted, rows)
    return {
        row: {
            name.removeprefix(prefix): whole.getlist(name) if name == f"{prefix}drivers" else str(text)
            for name, text in whole.items()
            if name.startswith(prefix)
        }
        for row in rows
        if (prefix := f"v{row}-")
    }


def _with_common(posted: QueryDict, rows: list[str]) -> QueryDict:
    """What was sent, and for each row what it has in common with the first one: that stands on the page once."""
    whole = posted.copy()
    of_first = f"v{rows[0]}-"
    for name, values in posted.lists():
        if name.startswith(of_first):
            for row in rows[1:]:
                if (own := f"v{row}-{name.removeprefix(of_first)}") not in posted:
                    whole.setlist(own, [str(value) for value in values])
    return whole


def _wanted(posted: QueryDict) -> list[str]:
    """The columns that somebody asked for, the last one by its button."""
    asked = [*posted.getlist("columns"), *([posted.get("vary", "")] if "add_column" in posted else [])]
    return list(dict.fromkeys(filter(None, asked)))[:50]


def _shown(value: Any) -> str:
    """A field's value as text, a list by its members, so that 3 and "3" are the same choice."""
    if isinstance(value, list | tuple):
        return ",".join(sorted(str(getattr(one, "pk", one)) for one in value))
    return "" if value is None else show_scalar(getattr(value, "pk", value))


def _row_ids(posted: QueryDict) -> list[str]:
    """The rows in the order of the page; a form always has one."""
    rows = [row for row in posted.getlist("rows") if row.isdecimal() and len(row) < 5]
    return list(dict.fromkeys(rows))[:MAX_ROWS] or ["0"]


def _baseline(posted: QueryDict, rows: list[str]) -> str:
    chosen = posted.get("baseline", "")
    return chosen if chosen in rows else rows[0]
