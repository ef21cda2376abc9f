"""The filters of the run list are the same on the page and in the API."""

from __future__ import annotations

from dataclasses import fields

from experiments.api.runs import RunQuery
from experiments.telling.run_list.conditions import CHOICES, FIGURES, TIMES
from experiments.telling.run_list.filters import RunFilter


def test_the_api_takes_every_filter_of_the_list_and_no_other() -> None:
    plain = {field.name for field in fields(RunFilter)} - {"conditions"}
    ranges = {f"{name}__{end}" for name in ("number", *FIGURES, *TIMES) for end in ("gte", "lte")}
    lists = {f"{name}__in" for name in ("number", "experiment", *CHOICES)}

    assert set(RunQuery.model_fields) == plain | ranges | lists
