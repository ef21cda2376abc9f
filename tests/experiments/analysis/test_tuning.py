"""The search for the best configuration against servers whose truth is known."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.tuning.confirming import Finalist, claim_of, verdict_on
from experiments.analysis.tuning.pairing import FIRST_PAIRS, SHARED_PAIRS
from experiments.analysis.tuning.proposing import expected_above
from experiments.analysis.tuning.search import Better, BudgetTooSmall, Decision, NothingBetter, Round, decide, searching
from experiments.analysis.tuning.smallest import Smallest, reduce
from experiments.analysis.tuning.space import Clause, Config, Key, Parameter, Space, Value
from experiments.analysis.tuning.trials import MOST_INVALID, Limit, Planned, Settings, Status, Trial

SPACE = Space(
    (
        Parameter("threads", "integer", low=1, high=1000, log=True),
        Parameter("cache", "switch", (False, True)),
        Parameter("mode", "choice", ("a", "b", "c")),
        Parameter("buffer", "number", low=0.0, high=1.0),
    ),
    forbidden=((Clause("mode", "is", "c"), Clause("cache", "is", False)),),
)
DEFAULT: dict[str, Value] = {"threads": 10, "cache": False, "mode": "a", "buffer": 0.5}
HOST_SPEED = (0.95, 1.0, 1.06)
NOISE = 0.02


def speed(config: Config) -> float:
    """Cache brings 20 %, 100 threads 10 %, mode c costs 5 %; the buffer does nothing."""
    threads = 0.1 * (1 - (math.log10(float(config["threads"])) - 2) ** 2)
    return math.exp(threads + 0.18 * bool(config["cache"]) - 0.05 * (config["mode"] == "c"))


def flat(config: Config) -> float:
    return 1.0


def settings(**changes: object) -> Settings:
    usual = Settings(SPACE, DEFAULT, True, budget_runs=60, hosts=3, limits=(Limit("p99_ms", 12.0),), seed=3)
    return replace(usual, **changes)  # type: ignore[arg-type]


class Server:
    """Runs what is planned. `status` says how a run of this configuration, the nth of all, ends."""

    def __init__(
        self,
        truth: Callable[[Config], float] = speed,
        *,
        p99_ms: Callable[[Config], float] = lambda config: 10.0,
        status: Callable[[Config, int], Status] = lambda config, number: "ok",
        higher_is_better: bool = True,
        noise: float = NOISE,
    ) -> None:
        self.truth, self.p99_ms, self.status, self.higher_is_better = truth, p99_ms, status, higher_is_better
        self.noise = noise

    def run(self, planned: Planned, number: int) -> Trial:
        source = np.random.default_rng([number, 1])
        status = self.status(planned.config, number)
        machine = HOST_SPEED[planned.host % len(HOST_SPEED)] * math.exp(source.normal(0, self.noise))
        figure = 1000 * self.truth(planned.config) * machine
        figure = figure if self.higher_is_better else 1e6 / figure
        p99 = self.p99_ms(planned.config) * math.exp(source.normal(0, 0.03))
        is_ok = status == "ok"
        return Trial(
            planned.config,
            planned.host,
            number / 15,
            status,
            planned.purpose,
            figure=figure if is_ok else None,
            bounded=(p99,) if is_ok else (),
            block=planned.block,
        )


def searched(given: Settings, server: Server) -> tuple[Decision, list[Trial]]:
    """The whole search."""
    trials: list[Trial] = []
    while isinstance(step := decide(given, trials), Round):
        trials += [server.run(planned, len(trials) + place) for place, planned in enumerate(step.planned)]
    return step, trials


def test_the_better_configuration_is_found_and_its_gain_is_told_truly() -> None:
    decision, trials = searched(settings(), Server())
    assert isinstance(decision, Better)
    claim = decision.claim
    true = speed(claim.config) / speed(DEFAULT) - 1
    assert true > 0.2
    assert claim.low <= true <= claim.high
    assert claim.low <= claim.gain <= claim.high
    assert len(trials) <= 60


def test_the_gain_of_a_time_is_told_as_speed() -> None:
    decision, _ = searched(settings(higher_is_better=False), Server(higher_is_better=False))
    assert isinstance(decision, Better)
    assert decision.claim.low <= speed(decision.claim.config) / speed(DEFAULT) - 1 <= decision.claim.high


def test_a_search_without_anything_to_find_ends_early_and_claims_nothing() -> None:
    decision, trials = searched(settings(), Server(flat))
    assert isinstance(decision, NothingBetter)
    assert "break" not in decision.sentence, "nothing is fast, so no limit is in the way"
    assert len(trials) <= 0.7 * 60


def test_a_small_chance_of_a_great_gain_is_worth_more_than_an_even_one_of_hardly_any() -> None:
    great, little = expected_above(np.array([-0.6, 0.0]), np.array([0.6, 0.02]))
    assert great == pytest.approx(0.0500, abs=1e-4)  # 0.6 times 0.0833, the unit normal loss at 1
    assert little == pytest.approx(0.00798, abs=1e-5)


def test_the_claim_rests_on_pairs_of_the_confirmation_alone() -> None:
    given = settings()
    decision, trials = searched(given, Server())
    assert isinstance(decision, Better)
    # Whatever the figures of the search had been at this configuration, the pairs say the same.
    changed = [
        replace(one, figure=one.figure * 1.0001 if one.figure else None) if one.purpose != "confirm" else one
        for one in trials
    ]
    again = decide(given, changed)
    assert isinstance(again, Better)
    assert (again.claim.gain, again.claim.low, again.claim.high) == pytest.approx(
        (decision.claim.gain, decision.claim.low, decision.claim.high)
    )
    pairs = Counter((one.block, one.host) for one in trials if one.purpose == "confirm")
    assert set(pairs.values()) == {2}


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_slow_host_counts_in_the_claim_as_it_does_where_the_winner_is_deployed(higher_is_better: bool) -> None:
    speeds = [1.5, 1.5, 0.9] * 4
    figures = [100 * one if higher_is_better else 100 / one for one in speeds]
    given = settings(higher_is_better=higher_is_better)
    finalist = Finalist(DEFAULT, {block: (100.0, figure) for block, figure in enumerate(figures)}, 0)
    verdict = verdict_on(given, finalist, 1)
    claim = claim_of(given, finalist, verdict, 1)
    assert claim is not None
    mean = float(np.mean(figures))
    true = mean / 100 - 1 if higher_is_better else 100 / mean - 1
    geometric = 1.5 ** (2 / 3) * 0.9 ** (1 / 3) - 1
    assert claim.gain == pytest.approx(true)
    assert claim.gain != pytest.approx(geometric, abs=0.01)
    assert claim.low < true < claim.high


@pytest.mark.parametrize("count", [0, 1, 8, 11, 30, 44, 50])
def test_whoever_goes_on_makes_the_same_next_trials(count: int) -> None:
    _, trials = searched(settings(), Server())
    copies = [replace(one, config=dict(one.config)) for one in trials[:count]]
    assert decide(settings(), trials[:count]) == decide(settings(), copies)


def test_invalid_runs_are_made_again_and_their_figures_are_never_looked_at() -> None:
    given = settings()
    invalid = Server(status=lambda config, number: "invalid" if number % 9 == 4 else "ok")
    decision, trials = searched(given, invalid)
    assert isinstance(decision, Better)
    wrong = [replace(one, figure=1e9, bounded=(1e-9,)) if one.status == "invalid" else one for one in trials]
    for count in (12, 30, len(trials)):
        assert decide(given, wrong[:count]) == decide(given, trials[:count])
    for one in trials[:40]:
        if one.status == "invalid":
            after = trials[trials.index(one) + 1 :]
            assert any(SPACE.key(later.config) == SPACE.key(one.config) for later in after)


def test_nothing_but_invalid_runs_ends_the_search() -> None:
    decision, trials = searched(settings(), Server(status=lambda config, number: "invalid"))
    assert isinstance(decision, NothingBetter)
    assert "invalid" in decision.sentence
    assert len(trials) <= 2 * MOST_INVALID + 3


def test_a_default_that_does_not_run_ends_the_search() -> None:
    decision, trials = searched(
        settings(), Server(status=lambda config, number: "crashed" if config == DEFAULT else "ok")
    )
    assert isinstance(decision, NothingBetter)
    assert "default itself" in decision.sentence
    assert sum(one.config == DEFAULT for one in trials) == 3


def test_a_space_in_which_everything_was_tried_is_no_dead_end() -> None:
    space = Space((Parameter("cache", "switch", (False, True)), Parameter("mode", "choice", ("a", "b"))))
    given = replace(settings(), space=space, default={"cache": False, "mode": "a"})

    def cached(config: Config) -> float:
        return 1.2 if config["cache"] else 1.0

    decision, _ = searched(given, Server(cached))
    assert isinstance(decision, Better)
    assert decision.claim.config["cache"]


def test_one_switch_is_searched_and_confirmed_like_any_space() -> None:
    space = Space((Parameter("cache", "switch", (False, True)),))
    given = replace(settings(), space=space, default={"cache": False})
    decision, _ = searched(given, Server(lambda config: 1.2 if config["cache"] else 1.0))
    assert isinstance(decision, Better)
    assert decision.claim.config["cache"]


def test_the_search_is_over_when_no_run_is_expected_to_bring_anything() -> None:
    space = Space((Parameter("cache", "switch", (False, True)), Parameter("mode", "choice", ("a", "b"))))
    given = replace(settings(), space=space, default={"cache": False, "mode": "a"})
    decision, trials = searched(given, Server(lambda config: 1.2 if config["cache"] and config["mode"] == "b" else 1.0))
    assert isinstance(decision, Better)
    assert sum(one.purpose != "confirm" for one in trials) < 0.6 * searching(given)


@pytest.mark.parametrize(
    "server",
    [
        Server(status=lambda config, number: "ok" if config == DEFAULT else "crashed"),
        Server(p99_ms=lambda config: 10.0 if config == DEFAULT else 30.0),
    ],
    ids=["all else crashes", "all else breaks the limit"],
)
def test_a_search_that_knows_no_way_looks_on_for_most_of_its_budget(server: Server) -> None:
    decision, trials = searched(settings(), server)
    assert isinstance(decision, NothingBetter)
    assert "No setting is likely" in decision.sentence
    assert len(trials) >= 36
    keys = [SPACE.key(one.config) for one in trials if one.purpose == "explore"]
    assert len(keys) == len(set(keys))


def test_a_budget_that_is_too_small_says_how_many_runs_would_do() -> None:
    def little(config: Config) -> float:
        return 1.045 if config["cache"] else 1.0

    answers = Counter[str]()
    for seed in range(6):
        decision, trials = searched(settings(budget_runs=40, seed=seed), Server(little, noise=0.05))
        answers[type(decision).__name__] += 1
        if isinstance(decision, BudgetTooSmall):
            assert decision.more_runs >= 2
            assert f"{decision.more_runs:,} more runs" in decision.sentence
            assert len(trials) > 30
    assert answers["BudgetTooSmall"] >= 1


def test_what_crashes_is_not_recommended_and_soon_not_tried_any_more() -> None:
    crashing = Server(status=lambda config, number: "crashed" if config["mode"] == "b" else "ok")
    decision, trials = searched(settings(budget_runs=80), crashing)
    assert isinstance(decision, Better)
    assert decision.claim.config["mode"] != "b"
    tried = [one.config["mode"] == "b" for one in trials if one.purpose == "explore"]
    assert sum(tried[len(tried) // 2 :]) < sum(tried[: len(tried) // 2])


def test_what_breaks_the_limit_is_not_recommended() -> None:
    slow_tail = Server(p99_ms=lambda config: 15.0 if config["cache"] else 10.0)
    decision, _ = searched(settings(), slow_tail)
    assert not isinstance(decision, Better) or not decision.claim.config["cache"]


@pytest.mark.parametrize(("hours_per_run", "shares"), [(1 / 15, True), (5.0, False)])
def test_a_finalist_that_crashes_leaves_the_fresh_runs_of_the_default_in_its_pairs_to_the_next_one(
    hours_per_run: float, shares: bool
) -> None:
    given, server = settings(budget_runs=80), Server()
    trials: list[Trial] = []
    blocks: dict[Key, list[int]] = {given.default_key: []}
    while isinstance(step := decide(given, trials), Round):
        for planned in step.planned:
            one = replace(server.run(planned, len(trials)), start_hours=len(trials) * hours_per_run)
            if planned.purpose == "confirm":
                key = SPACE.key(planned.config)
                blocks.setdefault(key, []).append(planned.block)
                crashes = list(blocks).index(key) == 1
                one = replace(one, status="crashed", figure=None, bounded=()) if crashes else one
            trials.append(one)
    assert isinstance(step, Better)
    default, first, second = blocks.values()
    assert SPACE.key(step.claim.config) == list(blocks)[2]
    assert set(first) & set(second) == (set(first) if shares else set())
    assert len(first) == FIRST_PAIRS <= SHARED_PAIRS
    assert set(default) == {*first, *second}
    assert len(default) == len(set(default)), "it ran once in each pair"


@pytest.mark.parametrize(
    ("pairs", "p99_ms", "goes_on"),
    [
        (FIRST_PAIRS, 11.0, True),
        (FIRST_PAIRS, 12.5, True),  # of 12, and the runs of the search kept the limit
        (FIRST_PAIRS, 40.0, False),  # the search had seven runs of it that kept the limit
        (MIN_FOR_VERDICT, 11.0, True),
        (MIN_FOR_VERDICT, 12.5, False),  # held in none of them, which is enough by now
    ],
)
def test_a_finalist_over_a_limit_is_out_before_its_pairs_are_complete(pairs: int, p99_ms: float, goes_on: bool) -> None:
    given = settings(budget_runs=80)
    _, trials = searched(given, Server(p99_ms=lambda config: Random(repr(sorted(config.items()))).uniform(7, 11)))
    finalist = next(one.config for one in trials if one.purpose == "confirm" and one.config != DEFAULT)
    begun = [
        replace(one, bounded=(p99_ms,)) if one.config == finalist and one.purpose == "confirm" else one
        for one in trials
        if one.purpose != "confirm" or one.block < pairs
    ]
    step = decide(given, begun)
    assert isinstance(step, Round)
    assert (finalist in [planned.config for planned in step.planned]) == goes_on


@pytest.mark.parametrize(("crashes", "sizes"), [(0, [3, 5]), (1, [3, 1, 2, 2])])
def test_pairs_are_made_few_at_once_where_it_is_in_doubt_whether_a_finalist_will_do(
    crashes: int, sizes: list[int]
) -> None:
    given, server = settings(budget_runs=80, hosts=6), Server()
    trials: list[Trial] = []
    found: list[int] = []
    left = crashes
    while isinstance(step := decide(given, trials), Round):
        confirmed = [planned for planned in step.planned if planned.purpose == "confirm"]
        found += [len({planned.block for planned in confirmed})] if confirmed else []
        for planned in step.planned:
            one = server.run(planned, len(trials))
            if left and planned in confirmed and planned.config != DEFAULT:
                one, left = replace(one, status="crashed", figure=None, bounded=()), left - 1
            trials.append(one)
    assert found[: len(sizes)] == sizes


def test_where_everything_fast_breaks_the_limit_the_answer_says_so() -> None:
    fast = 1.001 * speed(DEFAULT)
    decision, _ = searched(settings(), Server(p99_ms=lambda config: 20.0 if speed(config) > fast else 10.0))
    assert isinstance(decision, NothingBetter)
    assert re.search(r" \d+ that ran look better, but probably break a limit\.$", decision.sentence)


def test_a_likely_gain_of_hardly_more_than_the_margin_is_confirmed_before_the_search_gives_up() -> None:
    found = []
    for seed in range(6):
        server = Server(lambda config: 1.04 if config["cache"] else 1.0, noise=0.01)
        found.append(searched(settings(budget_runs=100, hosts=1, limits=(), seed=seed), server)[0])
    assert sum(isinstance(one, Better) for one in found) >= 5, found


def test_finalists_that_broke_a_limit_in_their_pairs_leave_room_for_what_is_found_later() -> None:
    space = Space((Parameter("mode", "choice", ("default", "a", "b", "c", "later", "slow")),))
    gains = {"default": 1.0, "a": 1.12, "b": 1.11, "c": 1.10, "later": 1.06, "slow": 0.9}
    limits = (Limit("p99_ms", 50.0),)
    given = Settings(space, {"mode": "default"}, True, budget_runs=300, limits=limits, seed=1)
    source = np.random.default_rng(0)

    def run(one: Planned, trials: Sequence[Trial]) -> Trial:
        mode = str(one.config["mode"])
        breaks = mode in "abc"  # hardly in the search, clearly in the pairs
        p99_ms = ((75 if one.purpose == "confirm" else 44) if breaks else 20) * math.exp(source.normal(0, 0.03))
        figure = 1000 * gains[mode] * math.exp(source.normal(0, 0.01))
        return Trial(one.config, 0, len(trials) / 10, "ok", one.purpose, figure, (p99_ms,), one.block)

    trials: list[Trial] = []
    for purpose, modes, times in (("repeat", ("default", "a", "b", "c", "slow"), 5), ("confirm", ("a", "b", "c"), 5)):
        for block, mode in enumerate(mode for mode in modes for _ in range(times)):
            of_pair = [mode] if purpose == "repeat" else ["default", mode]
            trials += [run(Planned({"mode": one}, 0, purpose, "", block), trials) for one in of_pair]  # type: ignore[arg-type]
    while isinstance(step := decide(given, trials), Round):
        trials += [run(one, trials) for one in step.planned]
    assert isinstance(step, Better), step
    assert step.claim.config == {"mode": "later"}


def test_while_there_is_nothing_to_confirm_the_search_goes_on_with_what_was_kept_for_that() -> None:
    def is_fast(config: Config) -> bool:
        """By chance, so that no surface tells which ones are, and by which the limit breaks."""
        return config != DEFAULT and Random(repr(sorted(config.items()))).random() < 0.5

    server = Server(
        lambda config: 2.0 if is_fast(config) else 1.0 if config == DEFAULT else 0.5,
        p99_ms=lambda config: 20.0 if is_fast(config) else 10.0,
    )
    _, trials = searched(settings(), server)
    assert sum(one.purpose != "confirm" for one in trials) > searching(settings())


def test_forbidden_combinations_are_never_planned_and_the_budget_is_kept() -> None:
    _, trials = searched(settings(), Server())
    for one in trials:
        SPACE.check(one.config)
    assert len(trials) <= 60
    assert sum(one.purpose == "control" for one in trials) >= 5


def test_every_trial_says_why_it_was_chosen() -> None:
    step = decide(settings(), [])
    assert isinstance(step, Round)
    assert step.planned[0].config == DEFAULT
    assert all(planned.why for planned in step.planned)


@pytest.mark.parametrize(
    "change, named",
    [
        ({"budget_runs": 5}, "budget_runs: give at least"),
        ({"hosts": 0}, "hosts: a search needs"),
        ({"margin_ratio": 3.0}, "margin_ratio lies between"),
        ({"default": {**DEFAULT, "threads": 0}}, "threads: 0 is outside"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(change: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        settings(**change)


LOW = 0.1
"""What the winner gains at least."""


def reduced(given: Settings, winner: Config, server: Server) -> tuple[Smallest, Sequence[Trial]]:
    trials: list[Trial] = []
    while not isinstance(step := reduce(given, winner, LOW, trials), Smallest):
        trials += [server.run(planned, len(trials) + place) for place, planned in enumerate(step)]
    return step, trials


def test_the_smallest_recipe_keeps_what_brings_the_gain_and_nothing_else() -> None:
    winner: dict[str, Value] = {"threads": 100, "cache": True, "mode": "b", "buffer": 0.9}
    smallest, trials = reduced(settings(), winner, Server())
    assert set(smallest.dropped) == {"mode", "buffer"}
    assert smallest.config == {"threads": 100, "cache": True, "mode": "a", "buffer": 0.5}
    assert smallest.together is not None
    assert smallest.together.not_worse
    assert {one.purpose for one in trials} == {"revert"}


def played(given: Settings, winner: Config, outcome: Callable[[Config, int], tuple[Status, float]]) -> Smallest:
    """Every run has the same figure; `outcome` says from configuration and block how it ended, and its p99 in ms."""
    trials: list[Trial] = []
    while not isinstance(step := reduce(given, winner, LOW, trials), Smallest):
        for one in step:
            status, p99_ms = outcome(one.config, one.block)
            ok = status == "ok"
            figure, bounded = (1000.0 + len(trials) % 3, (p99_ms,)) if ok else (None, ())
            trials.append(Trial(one.config, one.host, len(trials), status, "revert", figure, bounded, one.block))
    return step


@pytest.mark.parametrize(
    ("outcome", "obstacle"),
    [
        (lambda config, block: ("ok", 80.0 if config["mode"] == "a" else 20.0), "limit"),
        (lambda config, block: ("crashed" if config["mode"] == "a" and block % 8 < 3 else "ok", 20.0), "failed"),
    ],
)
def test_a_parameter_stays_that_keeps_a_limit_or_the_server_alive(
    outcome: Callable[[Config, int], tuple[Status, float]], obstacle: str
) -> None:
    winner: dict[str, Value] = {**DEFAULT, "cache": True, "mode": "b"}
    smallest = played(settings(limits=(Limit("latency_p99_ms", 50.0),)), winner, outcome)
    assert {one.parameter: one.obstacle for one in smallest.each} == {"cache": "", "mode": obstacle}
    assert (smallest.config, smallest.dropped) == ({**DEFAULT, "mode": "b"}, ("cache",))


def test_a_parameter_that_may_not_run_alone_at_its_default_is_said_to_stay() -> None:
    winner: dict[str, Value] = {**DEFAULT, "cache": True, "mode": "c"}  # mode c without the cache is forbidden
    smallest = played(settings(), winner, lambda config, block: ("ok", 10.0))
    assert {one.parameter: one.obstacle for one in smallest.each} == {"cache": "forbidden", "mode": ""}
    assert smallest.config == {**DEFAULT, "cache": True}


def test_parameters_that_only_together_keep_the_gain_stay() -> None:
    def either(config: Config) -> float:
        return 1.2 if config["cache"] or config["mode"] == "b" else 1.0

    winner: dict[str, Value] = {**DEFAULT, "threads": 40, "cache": True, "mode": "b"}
    smallest, trials = reduced(settings(), winner, Server(either))
    assert all(one.may_go for one in smallest.each)
    assert (smallest.config, smallest.dropped, smallest.obstacle) == (winner, (), "default")
    assert not any(SPACE.key(one.config) == SPACE.key(DEFAULT) for one in trials)


def test_the_default_is_never_the_smallest_recipe() -> None:
    winner: dict[str, Value] = {**DEFAULT, "cache": True}
    smallest, trials = reduced(settings(), winner, Server())
    assert [(one.parameter, one.obstacle) for one in smallest.each] == [("cache", "default")]
    assert (smallest.config, trials) == (winner, [])


@pytest.mark.parametrize(("low", "may_go"), [(0.1, True), (0.02, False)])
def test_what_may_be_lost_with_a_parameter_is_no_more_than_half_of_the_least_gain(low: float, may_go: bool) -> None:
    def slower_by_two_percent(config: Config) -> float:
        return 1.0 if config["mode"] == "b" else 0.985

    winner: dict[str, Value] = {**DEFAULT, "cache": True, "mode": "b"}
    server, trials = Server(slower_by_two_percent, noise=0.002), list[Trial]()
    while not isinstance(step := reduce(settings(), winner, low, trials), Smallest):
        trials += [server.run(planned, len(trials) + place) for place, planned in enumerate(step)]
    assert {one.parameter: one.may_go for one in step.each} == {"cache": True, "mode": may_go}
