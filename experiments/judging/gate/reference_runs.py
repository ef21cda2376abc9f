"""Runs outside an experiment that its candidates are held against: of a branch, a tag, a label, or a pinned run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.models import Experiment, Run, Variant
from experiments.registry.errors import RequestError
from experiments.registry.runs.baselines import baseline_named
from experiments.registry.runs.nights import sessions_of

NEWEST = 20
"""Of a branch, a tag or a label only so many sessions: older ones say little about the machine of today."""
MOST_RUNS = 400
"""Read at most to find them."""
FORMS = "branch:main, label:KEY=VALUE, tag:NAME, pinned:NAME or run:12"


@dataclass(frozen=True)
class ReferenceRuns:
    """The runs by session, what to call them, and a sentence about what they are.

    `earlier` are the sessions that say how much sessions differ: those of the reference, or of its history where the
    reference is one session alone.
    """

    name: str
    sessions: tuple[tuple[Run, ...], ...]
    earlier: tuple[tuple[Run, ...], ...]
    note: str


def reference_runs(experiment: Experiment, variant: Variant, own: Sequence[Run], reference: str) -> ReferenceRuns:
    """The runs that `reference` names and that the variant's runs can be compared with.

    Comparable: the same series (fingerprint), recipe and parameters. RequestError says how a reference is written.
    """
    kind, _, name = reference.partition(":")
    name = name.strip()
    if "\0" in reference or not name:
        raise _unknown(reference)
    comparable = _comparable(experiment, variant, own)
    match kind:
        case "branch":
            return _of_label(comparable, "branch", name)
        case "label" if "=" in name:
            key, _, value = name.partition("=")
            return _of_label(comparable, key, value)
        case "tag":
            return _newest(f"tag {name}", comparable, tags__contains=[name])
        case "pinned":
            return _repetitions(f"{name} (pinned)", comparable, baseline_named(experiment.team, name).run)
        case "run" if name.isascii() and name.isdigit() and len(name) < 10:
            run = Run.objects.for_team(experiment.team).filter(number=int(name)).first()
            if run is None:
                raise RequestError(f"There is no run #{name}.", field="baseline")
            return _repetitions(f"run #{name}", comparable, run)
    raise _unknown(reference)


def _comparable(experiment: Experiment, variant: Variant, own: Sequence[Run]) -> Any:
    """All runs of the team in the variant's series with the same recipe and parameters, but those of the experiment."""
    first = next((run for run in own if run.variant_id == variant.pk and run.is_usable and run.fingerprint), None)
    if first is None:
        return Run.objects.none()
    spec = Run.objects.values_list("spec", flat=True).get(pk=first.pk) or {}
    found = Run.objects.for_team(experiment.team).counted().filter(fingerprint=first.fingerprint)
    found = found.filter(
        recipe__name=variant.recipe.name,
        spec__recipe__parameters=spec.get("recipe", {}).get("parameters") or {},
        spec__workload__own_rate_rps=spec.get("workload", {}).get("own_rate_rps"),
    )
    return found.exclude(experiment_id=experiment.pk).defer("spec", "findings")


def _of_label(comparable: Any, key: str, value: str) -> ReferenceRuns:
    return _newest(f"{key}={value}", comparable, labels__contains={key: value})


def _newest(name: str, comparable: Any, **condition: Any) -> ReferenceRuns:
    sessions = _sessions(comparable.filter(**condition))
    return ReferenceRuns(name, sessions, sessions, _note(name, sessions))


def _sessions(runs: Any) -> tuple[tuple[Run, ...], ...]:
    return tuple(tuple(one) for one in sessions_of(list(runs.order_by("-number")[:MOST_RUNS]))[-NEWEST:])


def _repetitions(name: str, comparable: Any, run: Run) -> ReferenceRuns:
    """The run with the other repetitions of its variant; the newest sessions of its history say how they differ."""
    if run.experiment_id is not None and run.variant_id is not None:
        found = comparable.filter(experiment_id=run.experiment_id, variant_id=run.variant_id)
    else:
        found = comparable.filter(pk=run.pk)
    sessions = _sessions(found)
    return ReferenceRuns(name, sessions, _sessions(comparable) if sessions else (), _note(name, sessions))


def _note(name: str, sessions: Sequence[Sequence[Run]]) -> str:
    runs = sorted((run for session in sessions for run in session), key=lambda run: run.number)
    if not runs:
        return f"No comparable run stands behind {name}: same series, recipe and parameters."
    if len(runs) == 1:
        which = f"run #{runs[0].number}"
    else:
        of = f" of {len(sessions)} sessions" if len(sessions) > 1 else ""
        which = f"{len(runs)} runs{of}, #{runs[0].number} to #{runs[-1].number}"
    return f"The baseline {name} is {which}; what has changed on the machines since then counts as a difference, too."


def _unknown(reference: str) -> RequestError:
    return RequestError(f"A baseline is written {FORMS}, not {reference[:60]!r}.", field="baseline")
