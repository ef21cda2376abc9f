from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.models.key_order import in_order, keys_of

WRITTEN: tuple[Any, ...] = (
    {"steps": [{"z": 1, "a": {"y": 1, "b": 2}}, {"k": []}], "b": {}, "a": [[{"d": 1, "c": 2}]]},
    [{"b": 1, "a": 1}, "text", None, 4],
    {},
    "text",
)


@pytest.mark.parametrize("written", WRITTEN)
def test_keys_come_back_in_the_order_in_which_they_were_written(written: Any) -> None:
    kept = json.loads(json.dumps(written, sort_keys=True))
    assert json.dumps(in_order(kept, keys_of(written))) == json.dumps(written)


@pytest.mark.parametrize("keys", [[], ["a"], ["a", "a"], ["a", "c"], ["b", "a", "c"]])
def test_what_has_other_keys_stays_as_it_is(keys: list[str]) -> None:
    kept = {"a": 1, "b": {"c": 1, "d": 2}}
    assert json.dumps(in_order(kept, keys)) == json.dumps(kept)
