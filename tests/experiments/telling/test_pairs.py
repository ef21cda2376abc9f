"""Several `key=value` in one field of a page."""

from __future__ import annotations

import pytest

from experiments.telling.run_list.pairs import items_of, text_of

LOG = "opts=-Xlog:gc*,safepoint=info:file=x"


@pytest.mark.parametrize(
    "text, items",
    [
        ("", []),
        (" , ", []),
        ("a=1", ["a=1"]),
        ("a=1,b=2", ["a=1", "b=2"]),
        (" a=1 , b=2 ,", ["a=1", "b=2"]),
        ("os=linux,x86,n=1", ["os=linux,x86", "n=1"]),
        ("os=a, b,,c,", ["os=a, b,,c"]),
        (LOG, ["opts=-Xlog:gc*", "safepoint=info:file=x"]),
        (f'"{LOG}"', [LOG]),
        (f'n=1, "{LOG}" ,m=2', ["n=1", LOG, "m=2"]),
        ('"a=say ""x"",y=1"', ['a=say "x",y=1']),
        ('a="x, y"', ['a="x, y"']),
        ('"a=1', ['"a=1']),
        ("x", ["x"]),
    ],
)
def test_a_field_holds_items_with_commas_between_and_in_them(text: str, items: list[str]) -> None:
    assert items_of(text) == items


@pytest.mark.parametrize(
    "items",
    [[], ["a=1"], ["a=1", "os=a,b"], [LOG, "n=1"], ["a=1,", "b=2"], ['"a=1', 'b=2"'], ["a=1", "x"], ['a="b,c=d"']],
)
def test_items_are_written_as_they_are_read(items: list[str]) -> None:
    assert items_of(text_of(items)) == items
