"""The variants of an experiment as rows of a form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from django.http import QueryDict

from experiments.registry.documents.own_load import OWN_LOAD
from frontend.pages.new_experiment.forms import VariantForm
from frontend.shared.forms.choices import TeamChoices

MAX_ROWS = 50
_LABELS = {"offered_rate_rps": "rate", "sut": "server"}


@dataclass(frozen=True)
class Rows:
    """The variants of a form: row id -> its form, and which one is the baseline."""

    forms: dict[str, VariantForm]
    baseline: str
    note: str = ""
    """What was not done."""

    def __iter__(self) -> Iterator[tuple[str, VariantForm, bool]]:
        return iter([(row, form, row == self.baseline) for row, form in self.forms.items()])

    def are_valid(self) -> bool:
        """Whether every row is; all of them are read, so that all errors are shown."""
        return not [row for row, form in self.forms.items() if not form.is_valid()]


def bound_rows(choices: TeamChoices, posted: QueryDict) -> Rows:
    """The rows as they were sent."""
    forms = {row: VariantForm(choices, posted, prefix=f"v{row}") for row in _row_ids(posted)}
    return Rows(forms, _baseline(posted, list(forms)))


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
    when no value is given, or when a host is unknown.
    """
    rows = _row_ids(posted)
    values, source = _typed(posted, rows), _baseline(posted, rows)
    document = choices.recipe_document(values[source].get("recipe", ""))
    known = {*OWN_LOAD, "sut", *(document.parameters if document else ())}
    hosts = choices.suts_by_name()
    asked = [(posted.get(one, ""), posted.get(f"{one}_values", "")) for one in ("sweep", "sweep_2")]
    split = {name: list(dict.fromkeys(typed.replace(";", " ").split())) for name, typed in asked}
    factors = {name: wanted for name, wanted in split.items() if wanted and name in known}
    note = ""
    if strangers := [name for name in factors.get("sut", ()) if name not in hosts]:
        note = f"No server of the team is named {strangers[0]}; there is: {', '.join(hosts)}."
    elif factors:
        made = [dict(zip(factors, one, strict=True)) for one in product(*factors.values())]
        if len(made) > MAX_ROWS:
            note = f"These are {len(made)} variants; an experiment has at most {MAX_ROWS}, so the last are left out."
        values = {str(row): values[source] | _swept(chosen, hosts) for row, chosen in enumerate(made[:MAX_ROWS])}
        source = "0"
    forms = {row: VariantForm(choices, prefix=f"v{row}", initial=initial) for row, initial in values.items()}
    return Rows(forms, source, note)


def _swept(chosen: dict[str, str], hosts: dict[str, str]) -> dict[str, str]:
    """The fields of a variant with these values, and its name."""
    words = ", ".join(f"{_LABELS.get(name, name.replace('_', ' '))} {text}" for name, text in chosen.items())
    own = {name if name in OWN_LOAD else f"p_{name}": text for name, text in chosen.items() if name != "sut"}
    return {"name": words} | own | ({"sut": hosts[chosen["sut"]]} if "sut" in chosen else {})


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
