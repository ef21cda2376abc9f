"""What may be tried: values, conditions, forbidden combinations, and when two configurations are one."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.analysis.tuning.space import Clause, Condition, Config, Parameter, Space, Value

THREADS = Parameter("max_threads", "integer", low=10, high=1000, log=True)
SPARE = Parameter("min_spare", "integer", low=1, high=100)
COLLECTOR = Parameter("collector", "choice", ("G1", "Parallel", "ZGC"))
PAUSE = Parameter("pause_ms", "integer", low=10, high=500, only_when=Condition("collector", ("G1",)))
NODELAY = Parameter("nodelay", "switch", (False, True))
SPACE = Space(
    (THREADS, SPARE, COLLECTOR, PAUSE, NODELAY),
    forbidden=(
        (Clause("min_spare", "above", other="max_threads"),),
        (Clause("collector", "is", "ZGC"), Clause("max_threads", "above", 500)),
    ),
)
DEFAULT: dict[str, Value] = {
    "max_threads": 200,
    "min_spare": 10,
    "collector": "G1",
    "pause_ms": 200,
    "nodelay": True,
}


def test_a_configuration_inside_of_everything_passes() -> None:
    SPACE.check(DEFAULT)


@pytest.mark.parametrize(
    "change, named",
    [
        ({"max_threads": 5}, "max_threads: 5 is outside"),
        ({"max_threads": 10.5}, "max_threads: 10.5 is outside"),
        ({"max_threads": float("nan")}, "max_threads: nan is outside"),
        ({"max_threads": "many"}, "max_threads: 'many' is outside"),
        ({"collector": "Serial"}, "collector: 'Serial' is outside"),
        ({"min_spare": 60, "max_threads": 50}, "min_spare: this combination is forbidden"),
        ({"collector": "ZGC", "max_threads": 501}, "collector: this combination is forbidden"),
        ({"nothing": 1}, "nothing: there is no such parameter"),
    ],
)
def test_what_must_not_be_applied_is_refused_by_name(change: Config, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        SPACE.check({**DEFAULT, **change})


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ValueError, match="pause_ms: it has no value"):
        SPACE.check({name: value for name, value in DEFAULT.items() if name != "pause_ms"})


def test_a_parameter_that_does_not_count_has_the_value_of_the_default() -> None:
    drawn = {**DEFAULT, "collector": "Parallel", "pause_ms": 20, "nodelay": False}
    settled = SPACE.settled(drawn, DEFAULT)
    assert settled == {**drawn, "pause_ms": 200}
    assert SPACE.key(settled) == SPACE.key(drawn)
    assert SPACE.settled({**drawn, "collector": "G1"}, DEFAULT) == {**drawn, "collector": "G1"}


def test_a_mixture_does_not_hold_where_one_of_its_parameters_does_not_count() -> None:
    space = Space(SPACE.parameters, ((Clause("pause_ms", "below", 100), Clause("nodelay", "is", True)),))
    assert space.is_forbidden({**DEFAULT, "pause_ms": 50})
    assert not space.is_forbidden({**DEFAULT, "pause_ms": 50, "collector": "ZGC"})


def test_a_parameter_that_does_not_count_makes_no_other_configuration() -> None:
    parallel = {**DEFAULT, "collector": "Parallel"}
    assert SPACE.key(parallel) == SPACE.key({**parallel, "pause_ms": 20})
    assert SPACE.key(DEFAULT) != SPACE.key({**DEFAULT, "pause_ms": 20})
    positions = SPACE.positions([parallel, {**parallel, "pause_ms": 20}])
    assert np.array_equal(positions[0], positions[1])


@pytest.mark.parametrize("one", SPACE.parameters, ids=lambda one: one.name)
def test_values_and_fractions_of_the_range_lead_to_each_other(one: Parameter) -> None:
    for fraction in np.linspace(0, 1, 23):
        value = one.at(float(fraction))
        assert one.allows(value)
        if not one.choices:
            assert abs(one.position(value) - fraction) <= 1 / 20
        else:
            assert value in one.choices
    assert {one.at(0.0), one.at(1.0)} == ({one.choices[0], one.choices[-1]} if one.choices else {one.low, one.high})


@pytest.mark.parametrize(
    "make, named",
    [
        (lambda: Parameter("a", "integer", low=5, high=5), "a: the range is 5 to 5"),
        (lambda: Parameter("a", "number", low=0, high=5, log=True), "a: a logarithmic range begins above 0"),
        (lambda: Parameter("a", "choice", ("x",)), "a: give two choices"),
        (lambda: Parameter("a", "choice", ("x", "x")), "a: a choice is given twice"),
        (lambda: Space(()), "a space needs parameters"),
        (lambda: Space((THREADS, THREADS)), "each with a name of its own"),
        (lambda: Space((PAUSE, COLLECTOR)), "pause_ms: its condition must name a parameter that stands before it"),
        (lambda: Space((THREADS,), ((Clause("threads", "is", 1),),)), "forbidden: there is no parameter threads"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused_by_name(make: object, named: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=named):
        make()
