"""SMAC as a peer of the game, where its package is installed: `pip install smac==2.4.1` in an environment of the bench.

The project does not depend on it. What is used: https://automl.github.io/SMAC3/latest/advanced_usage/5_ask_and_tell/.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Sequence
from typing import Any

from bench.tuning.game import Problem, Result
from bench.tuning.peers import Asking
from experiments.analysis.tuning.space import Config, Parameter, Value

MISSING = "smac is left out, for its package is not installed: pip install smac==2.4.1, in an environment of its own"


def is_installed() -> bool:
    """Whether the game can be played with SMAC here."""
    return importlib.util.find_spec("smac") is not None


class Smac(Asking):
    """SMAC's random forest with one run of each configuration, as MLOS sets it up; its best trial is claimed.

    It knows no limits: what is over one costs as much as the worst that was seen, like a crash.
    """

    def start(self, problem: Problem) -> None:
        super().start(problem)
        smac, self.spaces = importlib.import_module("smac"), importlib.import_module("ConfigSpace")
        self.trials = importlib.import_module("smac.runhistory.dataclasses")
        seed = int(problem.source.integers(1 << 31))
        self.space = self.spaces.ConfigurationSpace(seed=seed)
        self.space.add([self._hyperparameter(one) for one in problem.space.parameters])
        self.folder = tempfile.TemporaryDirectory()
        scenario = smac.Scenario(
            self.space, deterministic=True, n_trials=problem.budget, seed=seed, output_directory=self.folder.name
        )
        facade = smac.HyperparameterOptimizationFacade
        self.optimizer = facade(
            scenario,
            lambda config, seed=0: 0.0,
            intensifier=facade.get_intensifier(scenario, max_config_calls=1),
            logging_level=False,
            overwrite=True,
        )
        self.asked: Any = None

    def tell(self, config: Config, runs: Sequence[Result]) -> None:
        value, over = self.scored(runs)
        cost = -self.worst if over > 0 else -value
        if self.asked is None:
            values = {one.name: _told(one, config[one.name]) for one in self.problem.space.parameters}
            self.asked = self.trials.TrialInfo(self.spaces.Configuration(self.space, values=values), seed=0)
        self.optimizer.tell(self.asked, self.trials.TrialValue(cost=cost), save=False)

    def ask(self) -> Config:
        self.asked = self.optimizer.ask()
        values = dict(self.asked.config)
        return {one.name: _meant(one, values[one.name]) for one in self.problem.space.parameters}

    def _hyperparameter(self, one: Parameter) -> Any:
        """The parameter in ConfigSpace's words; choices by their number."""
        if one.choices:
            return self.spaces.Categorical(one.name, [str(number) for number in range(len(one.choices))])
        if one.kind == "integer":
            return self.spaces.Integer(one.name, (round(one.low), round(one.high)), log=one.log)
        return self.spaces.Float(one.name, (float(one.low), float(one.high)), log=one.log)


def _told(one: Parameter, value: Value) -> Value:
    return str(one.choices.index(value)) if one.choices else value


def _meant(one: Parameter, value: Any) -> Value:
    if one.choices:
        return one.choices[int(value)]
    return int(value) if one.kind == "integer" else float(value)
