"""Fills a team with made-up runs, fast: for measuring pages at the size that a team reaches after years.

The runs are all finished (a made-up run cannot be executed), marked as demo, and the same for the same seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from json import dumps

import numpy as np
from django.db import connection, transaction
from django.db.models import JSONField
from django.utils import timezone
from psycopg import sql

from experiments.analysis.findings import Finding
from experiments.judging.verdicts.judging import store_verdicts
from experiments.keeping.demo.made_up import digest_of, made_up_metrics
from experiments.keeping.demo.stock import KERNELS, Line, Stock, stock_of
from experiments.models import Experiment, Run, SampleSeries, Team, Variant
from experiments.registry.runs.numbers import reserve_numbers
from experiments.registry.runs.parameters import parameters_of
from experiments.registry.runs.series import extend_series
from experiments.registry.runs.summary import summarise

SEED = 20250811
DAYS = 730
EXPERIMENT_EVERY, MOST_EXPERIMENTS = 250, 100
VARIANTS, BLOCKS = 3, 5
SAMPLED_RUNS, SAMPLE_POINTS = 200, 60
"""The newest runs get in-run series as well; all of them would be most of the database and of the time."""

_WORKLOAD_FACTORS = (1.0, 0.7, 0.4)
_RECIPE_FACTORS = (1.0, 1.18, 1.31)
_KERNEL_FACTORS = (1.0, 1.02, 0.95, 0.97)
_INVALID = Finding("errors", "invalid", "1280 connections could not be opened.", {"errors_connect": 1280.0}, "made up")
_SUSPECT = Finding(
    "driver_cpu", "warn", "The driver host was busy 87 % of the time.", {"driver_cpu_ratio": 0.87}, "made up"
)


@dataclass(frozen=True)
class _Slot:
    """Where a run belongs: an experiment's variant and block, or none."""

    experiment: Experiment
    variant: Variant
    block: int
    line: int
    recipe: int


def seed_runs(team: Team, count: int, *, seed: int = SEED) -> int:
    """Store `count` finished runs of the last two years with what belongs to them; returns the first number."""
    random = np.random.default_rng(seed)
    stock = stock_of(team)
    with transaction.atomic():
        first = reserve_numbers(team, count)
        slots = _experiments(team, stock, count)
        _copy_in(_runs(team, stock, slots, first, count, random), stock)
        _series(team, stock)
        _samples(team, range(first, first + count)[-SAMPLED_RUNS:], random)
        for experiment in {slot.experiment.pk: slot.experiment for slot in slots.values()}.values():
            store_verdicts(experiment)
    return first


def _copy_in(runs: Iterable[Run], stock: Stock) -> None:
    """Store runs with COPY: several times as fast as INSERT, and `queued_at` stays what the run says.

    Making a run may ask the database nothing: its connection is busy with the COPY, and would wait for itself.
    """
    fields = [field for field in Run._meta.concrete_fields if not field.primary_key]
    into = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(Run._meta.db_table), sql.SQL(", ").join(sql.Identifier(str(field.column)) for field in fields)
    )
    columns = [(field.attname, isinstance(field, JSONField)) for field in fields]
    # Specs are most of a run, and few: they are written as JSON once, and found again by their identity.
    specs = {id(spec): dumps(spec) for spec in stock.specs.values()}
    with connection.cursor() as cursor, cursor.copy(into) as copy:
        for run in runs:
            values = [(getattr(run, name), is_json) for name, is_json in columns]
            copy.write_row([(specs.get(id(value)) or dumps(value)) if is_json else value for value, is_json in values])


def _experiments(team: Team, stock: Stock, count: int) -> dict[int, _Slot]:
    """Experiments spread over the runs: offset of a run -> its place in one."""
    size = VARIANTS * BLOCKS
    number = min(MOST_EXPERIMENTS, count // EXPERIMENT_EVERY, count // size)
    recipes = [stock.recipes[at % len(stock.recipes)] for at in range(VARIANTS)]
    lines = [stock.lines[at % len(stock.lines)] for at in range(number)]
    experiments = Experiment.objects.bulk_create(
        Experiment(
            team=team,
            name=f"Seeded experiment {at + 1}",
            question="Made up, to fill the lists.",
            workload=line.workload,
            repetitions=BLOCKS,
            seed=at,
            state=Experiment.State.FINISHED,
            is_demo=True,
        )
        for at, line in enumerate(lines)
    )
    variants = Variant.objects.bulk_create(
        Variant(
            experiment=experiment,
            name=recipe.name,
            position=position,
            is_baseline=position == 0,
            application=line.application,
            recipe=recipe,
            sut=line.sut,
            drivers=line.drivers,
        )
        for experiment, line in zip(experiments, lines, strict=True)
        for position, recipe in enumerate(recipes)
    )
    slots = {}
    for at, experiment in enumerate(experiments):
        start = at * (count // number)
        for offset in range(size):
            block, position = divmod(offset, VARIANTS)
            slots[start + offset] = _Slot(
                experiment, variants[at * VARIANTS + position], block, at % len(stock.lines), position % len(recipes)
            )
    return slots


def _runs(
    team: Team, stock: Stock, slots: dict[int, _Slot], first: int, count: int, random: np.random.Generator
) -> Iterator[Run]:
    lines = random.integers(len(stock.lines), size=count)
    recipes = random.integers(len(stock.recipes), size=count)
    noise = np.exp(random.normal(0, 0.015, count))
    luck = random.random(count)
    end, step = timezone.now(), timedelta(days=DAYS) / count
    for index in range(count):
        slot = slots.get(index)
        at_line, at_recipe = (slot.line, slot.recipe) if slot else (int(lines[index]), int(recipes[index]))
        line, recipe = stock.lines[at_line], stock.recipes[at_recipe]
        # A new kernel every half a year or so, some faster and some slower; the SUTs get it one after the other.
        kernel = min(len(KERNELS) - 1, int(len(KERNELS) * index / count + 0.1 * line.sut_position))
        throughput_rps = _speed_rps(line, at_recipe, kernel) * float(noise[index])
        run = Run(
            team_id=team.pk,
            number=first + index,
            spec=stock.specs[at_line, at_recipe],
            parameters=parameters_of(stock.specs[at_line, at_recipe]),
            fingerprint=line.fingerprint,
            labels=_labels(index, float(luck[index])),
            tags=["nightly"] if index % 3 else ["nightly", "release"],
            notes="Made-up figures of seed_runs.",
            application_id=line.application.pk,
            recipe_id=recipe.pk,
            workload_id=line.workload.pk,
            sut_id=line.sut.pk,
            drivers_id=line.drivers.pk,
            sut_profile_id=line.profile.pk,
            config_id=stock.configs[line.sut_position, at_recipe, kernel].pk,
            state=Run.State.FINISHED,
            is_demo=True,
        )
        if slot:
            run.experiment, run.variant, run.block = slot.experiment, slot.variant, slot.block
        _times(run, end - (count - index) * step)
        _outcome(run, made_up_metrics(throughput_rps, random, connections=line.connections), float(luck[index]))
        yield run


def _speed_rps(line: Line, recipe: int, kernel: int) -> float:
    """What such a machine could reach: more CPUs help less and less, recipes and kernels make their difference."""
    size: float = 2_400.0 * int(line.profile.facts["cpu.threads"]) ** 0.85
    workload = _WORKLOAD_FACTORS[line.workload.pk % len(_WORKLOAD_FACTORS)]
    return size * workload * _RECIPE_FACTORS[recipe % len(_RECIPE_FACTORS)] * _KERNEL_FACTORS[kernel]


def _labels(index: int, luck: float) -> dict[str, str]:
    branch = "main" if luck < 0.8 else f"feature-{index % 40}"
    return {"branch": branch, "commit": digest_of(f"commit {index // 6}")[:10], "build": str(index // 6)}


def _times(run: Run, at: datetime) -> None:
    run.queued_at, run.started_at = at - timedelta(minutes=2), at
    run.measured_at, run.finished_at = at + timedelta(seconds=25), at + timedelta(seconds=95)


def _outcome(run: Run, metrics: dict[str, float], luck: float) -> None:
    """Most runs succeed and are valid; 1 % failed, 0.5 % was cancelled, 3 % is invalid, 4 % suspect."""
    run.restore = Run.Restore.VERIFIED
    if luck < 0.01:
        run.outcome, run.failure = Run.Outcome.FAILED, "The server was not ready within 60 s: no answer yet."
        return
    if luck < 0.015:
        run.outcome, run.failure = Run.Outcome.CANCELLED, "Cancelled by a person."
        return
    run.outcome, run.validity = Run.Outcome.SUCCEEDED, Run.Validity.VALID
    if luck < 0.045:
        run.validity, run.findings = Run.Validity.INVALID, [asdict(_INVALID)]
        metrics["errors_total"] = 1280.0
    elif luck < 0.085:
        run.validity, run.findings = Run.Validity.SUSPECT, [asdict(_SUSPECT)]
    summarise(run, metrics)


def _series(team: Team, stock: Stock) -> None:
    for line in stock.lines:
        last = Run.objects.for_team(team).counted().filter(fingerprint=line.fingerprint).order_by("-number").first()
        if last is None:
            continue
        extend_series(
            last,
            application=str(line.application),
            workload=str(line.workload),
            tool="wrk (made up)",
            latency_basis="service_time",
        )


def _samples(team: Team, numbers: range, random: np.random.Generator) -> None:
    newest = Run.objects.for_team(team).counted().filter(number__in=numbers)
    at_s = [float(second) for second in range(SAMPLE_POINTS)]
    SampleSeries.objects.bulk_create(
        SampleSeries(
            run=run,
            role=role,
            channel="cpu_set.busy_ratio",
            unit="ratio",
            at_s=at_s,
            values=np.clip(random.normal(mean, 0.02, SAMPLE_POINTS), 0, 1).round(3).tolist(),
        )
        for run in newest
        for role, mean in (("sut", 0.95), ("driver", 0.6))
    )
