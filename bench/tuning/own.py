"""BenchHub's own search, verdict and confirmation as a policy of the game; nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence

from bench.tuning.game import Ask, Claim, Problem, Result
from experiments.analysis.tuning.search import Better, Round, decide
from experiments.analysis.tuning.trials import Limit, Planned, Settings, Status, Trial

STATUS: dict[str, Status] = {"ok": "ok", "invalid": "invalid", "crash": "crashed"}


class BenchHub:
    """Asks `decide` after each round, as a worker would."""

    def start(self, problem: Problem) -> None:
        self.settings = Settings(
            space=problem.space,
            default=problem.default,
            higher_is_better=problem.higher_is_better,
            budget_runs=problem.budget,
            hosts=problem.hosts,
            limits=(Limit("p99_ms", problem.p99_limit_ms),),
            seed=int(problem.source.integers(1 << 31)),
        )
        self.planned: list[Planned] = []

    def suggest(self, history: Sequence[Result]) -> list[Ask]:
        decision = decide(self.settings, self.trials(history))
        if not isinstance(decision, Round):
            return []
        self.planned += decision.planned
        return [Ask(one.config, one.host) for one in decision.planned]

    def claim(self, history: Sequence[Result]) -> Claim:
        decision = decide(self.settings, self.trials(history))
        if not isinstance(decision, Better):
            return Claim()
        found = decision.claim
        return Claim(found.config, found.gain, found.low, found.high)

    def trials(self, history: Sequence[Result]) -> list[Trial]:
        """The runs as the product stores them: an invalid run has no figures. What was `asked` it does not keep."""
        return [
            Trial(
                config=result.config,
                host=result.host,
                start_hours=result.start_hours,
                status=STATUS[result.status],
                purpose=planned.purpose,
                figure=result.figure if result.status == "ok" else None,
                bounded=(result.p99_ms,) if result.status == "ok" and result.p99_ms is not None else (),
                block=planned.block,
                asked=planned.config,
            )
            for result, planned in zip(history, self.planned[: len(history)], strict=True)
        ]
