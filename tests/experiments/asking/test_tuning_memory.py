"""The memory that a tuning search may ask for, against the last facts of its hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.steps.recipe import RecipeDocument
from experiments.asking.launching.choices import Choice
from experiments.asking.library import catalogue
from experiments.asking.library.fit import fits
from experiments.asking.library.install import Places
from experiments.asking.tunings.memory import check_memory
from experiments.asking.tunings.plan import TuningPlan
from experiments.asking.tunings.space import read_space, space_of
from experiments.models import Member, Recipe
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import RequestError
from tests.experiments.asking.test_tuning_suts import known
from tests.experiments.conftest import ready_host

RECIPE: dict[str, Any] = {
    "parameters": {
        "heap_mb": {"type": "int", "default": 256, "minimum": 64, "memory": "MiB"},
        "stack_kb": {"type": "int", "default": 512, "minimum": 64, "memory": "KiB"},
        "threads": {"type": "int", "default": 8, "minimum": 1},
    },
    "steps": [
        {"kind": "jvm_options", "options": ["-Xmx${heap_mb}m", "-Xss${stack_kb}k", "-Dthreads=${threads}"]},
    ],
}
THREADS = {"name": "threads", "low": 1, "high": 1_000_000}
TWO_GIB = {"memory.total_bytes": str(2 << 30)}


@pytest.fixture
def choice(admin: Member, stock: dict[str, Any]) -> Choice:
    return Choice(**stock | {"recipe": save_version(admin, Recipe, "memory", RECIPE)})


def heap(high: int, stack_kb: int = 1024, **more: Any) -> dict[str, Any]:
    ranges = [
        {"name": "heap_mb", "low": 64, "high": high},
        {"name": "stack_kb", "low": 64, "high": stack_kb},
        THREADS,
    ]
    return {"parameters": ranges, **more}


def refused(member: Member, choice: Choice, space: dict[str, Any]) -> tuple[str, str]:
    """The field and the sentence; two empty texts when it may be started."""
    try:
        TuningPlan("Faster?", choice, space).checked(member)
    except RequestError as error:
        return error.field or "", error.message
    return "", ""


def test_an_upper_end_beyond_the_memory_of_the_host_is_refused_at_its_parameter(admin: Member, choice: Choice) -> None:
    known(choice.sut, TWO_GIB)
    field, said = refused(admin, choice, heap(65_536))
    assert field == "space.heap_mb"
    assert said == ("heap_mb = 65536 takes 64.0 GiB of memory, and sut-1 has 2.0 GiB: lower the upper end of heap_mb.")
    choices = {"parameters": [{"name": "heap_mb", "choices": [256, 4096, 512]}]}
    assert refused(admin, choice, choices)[0] == "space.heap_mb"
    assert refused(admin, choice, heap(2000)) == ("", "")


def test_upper_ends_that_are_too_much_together_are_refused_at_the_largest(admin: Member, choice: Choice) -> None:
    known(choice.sut, TWO_GIB)
    field, said = refused(admin, choice, heap(2000, stack_kb=1 << 20))
    assert (field, said.partition(",")[0]) == ("space.heap_mb", "heap_mb = 2000 with stack_kb takes 3.0 GiB of memory")
    fixed = replace(choice, parameters={"stack_kb": 1 << 20})
    alone = {"parameters": [{"name": "heap_mb", "low": 64, "high": 2000}]}
    assert refused(admin, fixed, alone)[0] == "space.heap_mb"
    assert refused(admin, choice, alone) == ("", "")


def test_a_sum_that_is_never_tried_together_is_not_refused(admin: Member, choice: Choice) -> None:
    known(choice.sut, TWO_GIB)
    never = heap(2000, stack_kb=1 << 20, forbidden=["heap_mb > 1000 and stack_kb > 500000"])
    assert refused(admin, choice, never) == ("", "")
    other = heap(2000, stack_kb=1 << 20, forbidden=["heap_mb > 1000 and threads > 20"])
    assert refused(admin, choice, other)[0] == "space.heap_mb"


def test_nothing_is_refused_where_nothing_is_known_or_nothing_is_memory(admin: Member, choice: Choice) -> None:
    assert refused(admin, choice, heap(65_536)) == ("", "")
    known(choice.sut, {"cpu.count": "8"})
    assert refused(admin, choice, heap(65_536)) == ("", "")
    known(choice.sut, TWO_GIB, digest="b" * 64)
    assert refused(admin, choice, {"parameters": [THREADS]}) == ("", "")


def test_what_a_members_steps_take_is_taken_of_its_own_host(admin: Member) -> None:
    document = RecipeDocument.model_validate(RECIPE | {"steps": [{**RECIPE["steps"][0], "on": "database"}]})
    space = space_of(read_space(heap(4096)), document)
    sut, database = known(ready_host(admin, "web"), TWO_GIB), ready_host(admin, "database")
    check_memory(document, space, {}, sut, {"database": database})
    known(database, TWO_GIB)
    with pytest.raises(RequestError, match=r"database has 2\.0 GiB"):
        check_memory(document, space, {}, sut, {"database": database})


def test_memory_in_a_recipe_is_that_of_a_number() -> None:
    with pytest.raises(ValueError, match="a str is no number of MiB"):
        RecipeDocument.model_validate({"parameters": {"heap": {"type": "str", "default": "1g", "memory": "MiB"}}})


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["tune-jvm", "tune-tomcat-jvm", "tune-liberty-executor", "tune-postgresql"])
def test_the_library_says_before_the_start_which_bounds_do_not_fit_the_host(name: str, admin: Member) -> None:
    template = catalogue.tuning(name)
    small, large = ready_host(admin, "small", roles="sut"), ready_host(admin, "large", roles="sut")
    known(small, {"cpu.online": "0-1", "memory.total_bytes": str(512 << 20)})
    known(large, {"cpu.online": "0-1", "memory.total_bytes": str(8 << 30)}, digest="b" * 64)
    driver = (ready_host(admin, "loader", roles="driver"),)
    said = [one.sentence for one in fits(template, "small", Places(small, driver), {}) if one.result == "fail"]
    assert [one for one in said if "lower the upper end of" in one]
    said = [one.sentence for one in fits(template, "small", Places(large, driver), {}) if one.result == "fail"]
    assert not [one for one in said if "memory" in one]
