"""The variants of an experiment as rows of a form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from frontend.pages.new_experiment.forms import VariantForm
from frontend.pages.new_experiment.sweep import MAX_ROWS, read_sweep, sweep_inputs
from frontend.shared.forms.choices import TeamChoices


@dataclass(frozen=True)
class Rows:
    """The variants of a form: row id -> its form, and which one is the baseline."""

    forms: dict[str, VariantForm]
    baseline: str
    note: str = ""
    """What was not done."""
    sweep: Mapping[str, str] = field(default_factory=dict)
    """What was typed for a sweep that could not be made."""

    def __iter__(self) -> Iterator[tuple[str, VariantForm, bool]]:
        return iter([(row, form, row == self.baseline) for row, form in self.forms.items()])

    def are_valid(self) -> bool:
        """Whether every row is; all of them are read, so that all errors are shown."""
        return not [row for row, form in self.forms.items() if not form.is_valid()] and not self.sweep


def bound_rows(choices: TeamChoices, posted: QueryDict) -> Rows:
    """The rows as they were sent. They are not valid while values of a sweep are typed of which no variant was made."""
    forms = {row: VariantForm(choices, posted, prefix=f"v{row}") for row in _row_ids(posted)}
    sweep = sweep_inputs(posted)
    note = (
        "Press “Make the variants” first, or empty the values of the sweep: they are no variants yet." if sweep else ""
    )
    return Rows(forms, _baseline(posted, list(forms)), note, sweep)


def changed_rows(choices: TeamChoices, posted: QueryDict) -> Rows:
    """The rows after `add`, `copy=<row>` or `remove=<row>`, with all that was typed and no error shown yet."""
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
    return Rows(forms, _baseline(posted, rows))


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
    return {
        row: {
            name.removeprefix(prefix): posted.getlist(name) if name == f"{prefix}drivers" else str(text)
            for name, text in posted.items()
            if name.startswith(prefix)
        }
        for row in rows
        if (prefix := f"v{row}-")
    }


def _row_ids(posted: QueryDict) -> list[str]:
    """The rows in the order of the page; a form always has one."""
    rows = [row for row in posted.getlist("rows") if row.isdecimal() and len(row) < 5]
    return list(dict.fromkeys(rows))[:MAX_ROWS] or ["0"]


def _baseline(posted: QueryDict, rows: list[str]) -> str:
    chosen = posted.get("baseline", "")
    return chosen if chosen in rows else rows[0]
