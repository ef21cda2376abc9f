"""Runs by what their machines were: kernel, OS and memory as factors of an experiment, or of any runs side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from experiments.analysis.machine_factors import Machines, Measured, machines_of
from experiments.judging.verdicts.judging import counted_figure
from experiments.models import Experiment, HardwareProfile, Run, Variant
from experiments.registry.metrics.normalisation import described_cpus
from experiments.registry.runs.parameters import parameter_texts

FACTORS = ("kernel", "OS", "memory", "architecture", "CPU model", "CPUs online", "Java")

NO_NAME = "the same load"
"""Of runs that name nothing of what they were asked."""

MIB, GIB = 1 << 20, 1 << 30
SAME_MEMORY_RATIO = 1.07
"""The kernel keeps some of the memory for itself, another kernel another part; modules are twice or half as large."""


def machines_of_experiment(
    experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run], metric: str
) -> Machines:
    """The counted repetitions by the machines that they really ran on, whichever host a variant names.

    Set-ups are held against that of the baseline.
    """
    ordered = sorted(variants, key=lambda variant: (not variant.is_baseline, variant.position))
    asked = _texts([_of_variant(variant) for variant in ordered])
    of_variant: dict[int | None, list[Run]] = defaultdict(list)
    for run in runs:
        if experiment.compares(run.block):
            of_variant[run.variant_id].append(run)
    chosen = [(run, setup) for one, setup in zip(ordered, asked, strict=True) for run in of_variant[one.pk]]
    return _machines([run for run, _ in chosen], [setup for _, setup in chosen], metric)


def machines_of_runs(runs: Sequence[Run], metric: str) -> Machines:
    """Runs of no common experiment, also imported ones: those that were asked for the same are repetitions."""
    return _machines(runs, _texts([_of_run(run) for run in runs]), metric)


def machine_texts(profiles: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The factors that each of these profiles tells, "" for one that it does not."""
    memory = _memory_texts(profiles)
    return [
        {
            "kernel": facts.get("kernel.release", ""),
            "OS": facts.get("os.name", ""),
            "memory": memory.get(facts.get("memory.total_bytes", ""), ""),
            "architecture": facts.get("cpu.architecture") or facts.get("kernel.machine", ""),
            "CPU model": facts.get("cpu.model", ""),
            "CPUs online": _cpus_text(facts),
            "Java": facts.get("java.path.version", ""),
        }
        for facts in profiles
    ]


def _machines(runs: Sequence[Run], setups: Sequence[str], metric: str) -> Machines:
    profiles = HardwareProfile.objects.in_bulk({run.sut_profile_id for run in runs if run.sut_profile_id})
    texts = dict(zip(profiles, machine_texts([profile.facts for profile in profiles.values()]), strict=True))
    return machines_of(
        [
            Measured(
                number=run.number,
                machine=texts[run.sut_profile_id],
                host=run.sut.name if run.sut else "",
                setup=setup,
                value=value,
                block=run.block,
                executed=run.origin == Run.Origin.EXECUTED,
            )
            for run, setup in zip(runs, setups, strict=True)
            if run.sut_profile_id and (value := counted_figure(run, metric)) is not None
        ],
        FACTORS,
    )


def _memory_texts(profiles: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Memory in bytes -> its level in words: sizes that differ by a few per cent only are one level."""
    told = {facts.get("memory.total_bytes", "") for facts in profiles}
    levels: list[list[int]] = []
    for size_bytes in sorted(int(text) for text in told if text.isdecimal()):
        if levels and size_bytes <= levels[-1][0] * SAME_MEMORY_RATIO:
            levels[-1].append(size_bytes)
        else:
            levels.append([size_bytes])
    return {str(size_bytes): _size_text(level[-1]) for level in levels for size_bytes in level}


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes / GIB:,.3g} GiB" if size_bytes >= GIB else f"{size_bytes / MIB:,.3g} MiB"


def _cpus_text(facts: Mapping[str, str]) -> str:
    count = described_cpus({}, facts)
    return f"{count} CPU{'' if count == 1 else 's'}" if count else ""


def _of_variant(variant: Variant) -> dict[str, str]:
    """What a variant asks for, its hosts left out. The variant needs its documents."""
    return {
        "application": str(variant.application),
        "recipe": str(variant.recipe),
        "offered rate": f"{variant.offered_rate_rps:,.12g} requests/s" if variant.offered_rate_rps else "",
        "concurrency": f"{variant.concurrency:,} at once" if variant.concurrency else "",
        **_named(parameter_texts(variant.parameters)),
    }


def _of_run(run: Run) -> dict[str, str]:
    """What a run was asked, as far as it says; of an imported one its label `setup`, or else `variant`, counts, too."""
    own = run.variant
    return {
        "application": str(run.application or ""),
        "recipe": str(run.recipe or ""),
        "workload": str(run.workload or ""),
        "label": run.labels.get("setup", run.labels.get("variant", "")) if run.origin == Run.Origin.IMPORTED else "",
        "offered rate": f"{own.offered_rate_rps:,.12g} requests/s" if own and own.offered_rate_rps else "",
        "concurrency": f"{own.concurrency:,} at once" if own and own.concurrency else "",
        **_named(run.parameters),
    }


def _named(parameters: Mapping[str, str]) -> dict[str, str]:
    return {f"parameter {name}": f"{name} {value}" for name, value in parameters.items()}


def _texts(asked: Sequence[Mapping[str, str]]) -> list[str]:
    """What was asked in words, without what all of them have in common; the recipe alone when that is everything."""
    names = dict.fromkeys(name for one in asked for name in one)
    differing = [name for name in names if len({one.get(name, "") for one in asked}) > 1] or ["recipe"]
    return [", ".join(filter(None, (one.get(name, "") for name in differing))) or NO_NAME for one in asked]
