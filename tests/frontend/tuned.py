"""A tuning search with many parameters and trials, stored as if it had been made."""

from __future__ import annotations

import random
from typing import Any

from experiments.asking.launching.choices import Choice
from experiments.asking.tunings.live import start_tuning
from experiments.asking.tunings.plan import LimitWanted, TuningPlan
from experiments.models import Member, Recipe, Tuning, TuningTrial
from experiments.registry.documents.versions import save_version

PLAIN = [f"part_{number}" for number in range(1, 9)]
RECIPE: dict[str, Any] = {
    "parameters": {
        "workers": {"type": "int", "default": 4, "minimum": 1, "maximum": 8},
        "heap_mb": {"type": "int", "default": 256, "minimum": 64, "maximum": 4096},
        "collector": {"type": "str", "default": "Serial", "choices": ["Serial", "G1", "Z"]},
        "region_mb": {"type": "int", "default": 8, "minimum": 1, "maximum": 32},
        **{name: {"type": "float", "default": 0.5, "minimum": 0, "maximum": 1} for name in PLAIN},
    },
    "steps": [
        {
            "kind": "environment",
            "variables": {
                name.upper(): f"${{{name}}}" for name in ("workers", "heap_mb", "collector", "region_mb", *PLAIN)
            },
        }
    ],
}
SPACE: dict[str, Any] = {
    "parameters": [
        {"name": "workers", "low": 1, "high": 8},
        {"name": "heap_mb", "low": 64, "high": 4096, "log": True},
        {"name": "collector"},
        {"name": "region_mb", "low": 1, "high": 32, "only_when": "collector = G1"},
        *({"name": name, "low": 0, "high": 1} for name in PLAIN),
    ]
}


def tuned(member: Member, stock: dict[str, Any], trials: int) -> Tuning:
    """So many trials over twelve parameters: more workers are faster, of the others only noise. Two in nine of the
    trials crash or are refused; those with a large heap are over the limit of the latency."""
    choice = Choice(**stock | {"recipe": save_version(member, Recipe, "many", RECIPE)})
    limits = [LimitWanted("latency_p99_ms", at_most=50.0)]
    plan = TuningPlan("Twelve parameters", choice, SPACE, limits=limits, budget_runs=trials, seed=3)
    tuning = start_tuning(member, plan)
    tuning.trials.all().delete()
    chance = random.Random(5)
    made = []
    for position in range(trials):
        config = dict(tuning.default)
        is_control = position % 10 == 0
        if not is_control:
            config |= {
                "workers": chance.randint(1, 8), "heap_mb": round(64 * 64 ** chance.random()),
                "collector": chance.choice(["Serial", "G1", "Z"]), "region_mb": chance.randint(1, 32),
                **{name: chance.random() for name in PLAIN},
            }  # fmt: skip
        result = "ok" if is_control or position % 9 > 1 else "crashed" if position % 9 else "refused"
        speed = 1000 * (config["workers"] / 4) ** 0.2 * chance.lognormvariate(0, 0.01)
        made.append(
            TuningTrial(
                tuning=tuning, position=position, purpose="control" if is_control else "explore", config=config,
                why="spread over the space", result=result, start_hours=position / 10, duration_s=360.0,
                figure=speed if result == "ok" else None,
                bounded=[60.0 if config["heap_mb"] > 2048 else 20.0] if result == "ok" else [],
            )
        )  # fmt: skip
    TuningTrial.objects.bulk_create(made)
    best = max((one for one in made if one.figure), key=lambda one: one.figure or 0.0)
    tuning.best = {"config": best.config, "gain": 0.15, "low": 0.1, "high": 0.2, "within": 0.9, "runs": 1}
    tuning.state, tuning.sentence = Tuning.State.FINISHED, "No configuration was confirmed to be better."
    tuning.outcome = Tuning.Outcome.NOTHING_BETTER
    tuning.save()
    return tuning
