"""How to repeat an experiment: its documents as YAML, the commands, and the order in which its runs were drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from experiments.models import Document, Experiment, Run, Variant
from experiments.registry.documents.versions import noun, to_yaml
from experiments.registry.documents.yaml_text import dump_yaml
from experiments.registry.experiments.rules import rules_of


@dataclass(frozen=True)
class DocumentText:
    """One version of an application, recipe or workload."""

    kind: str
    name: str
    yaml: str


@dataclass(frozen=True)
class BlockOrder:
    """The variants of one block in the order in which they ran."""

    block: int
    variants: tuple[str, ...]


@dataclass(frozen=True)
class Repeat:
    """`experiment_yaml` is a body for `POST /api/v1/experiments`; `commands` are (what it does, command)."""

    order: str
    seed: int
    repetitions: int
    blocks: tuple[BlockOrder, ...]
    experiment_yaml: str
    documents: tuple[DocumentText, ...]
    commands: tuple[tuple[str, str], ...]


def repeat_of(experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run], base_url: str) -> Repeat:
    return Repeat(
        order=str(experiment.get_order_display()),
        seed=experiment.seed,
        repetitions=experiment.repetitions,
        blocks=_blocks(runs, experiment.first_block),
        experiment_yaml=_experiment_yaml(experiment, variants),
        documents=tuple(_documents([experiment.workload, *_used(variants)])),
        commands=_commands(experiment, base_url),
    )


def _blocks(runs: Sequence[Run], first: int) -> tuple[BlockOrder, ...]:
    """From block `first` on, those before it are the A/A check's. Retries are left out: they stand for another run."""
    order: dict[int, list[str]] = {}
    for run in runs:
        if run.block is not None and run.block >= first and run.retry_of_id is None:
            order.setdefault(run.block, []).append(str(run.variant))
    return tuple(BlockOrder(block - first + 1, tuple(names)) for block, names in sorted(order.items()))


def _used(variants: Sequence[Variant]) -> Iterable[Document]:
    for variant in variants:
        yield variant.application
        yield variant.recipe


def _documents(documents: Iterable[Document]) -> Iterable[DocumentText]:
    seen = set()
    for document in documents:
        key = (type(document), document.pk)
        if key not in seen:
            seen.add(key)
            yield DocumentText(noun(type(document)), str(document), to_yaml(document))


def _experiment_yaml(experiment: Experiment, variants: Sequence[Variant]) -> str:
    """What `POST /experiments` takes, every document in the version that was used."""
    rules = rules_of(experiment)
    body = {
        "name": experiment.name,
        "question": experiment.question,
        "workload": _version(experiment.workload),
        "repetitions": experiment.repetitions,
        "order": str(experiment.order),
        "primary_metric": experiment.primary_metric,
        "margin_ratio": experiment.margin_ratio,
        **asdict(rules),
        "stop_rule": str(rules.stop_rule),
        "gate_metrics": list(rules.gate_metrics),
        "variants": [
            {
                "name": variant.name,
                "is_baseline": variant.is_baseline,
                "application": _version(variant.application),
                "recipe": _version(variant.recipe),
                "parameters": dict(variant.parameters),
                "sut": variant.sut.name,
                "drivers": variant.drivers.names,
                **({"offered_rate_rps": variant.offered_rate_rps} if variant.offered_rate_rps else {}),
                **({"concurrency": variant.concurrency} if variant.concurrency else {}),
            }
            for variant in variants
        ],
    }
    return dump_yaml(body)


def _version(document: Document) -> str:
    return f"{document.name}@{document.version}"


def _commands(experiment: Experiment, base_url: str) -> tuple[tuple[str, str], ...]:
    post = 'curl -X POST -H "Authorization: Bearer $BENCHHUB_TOKEN" -H "Content-Type: application/'
    copies = f'{post}json" -d \'{{"experiment": {experiment.pk}}}\' {base_url}/api/v1/experiments/copies'
    elsewhere = f'{post}yaml" --data-binary @experiment.yaml $BENCHHUB_URL/api/v1/experiments'
    waiting = f"BENCHHUB_URL={base_url} python3 benchhub-ci run --experiment {experiment.pk}"
    return (
        ("Run it again here, and wait for the verdict", waiting),
        ("Run it again here, without waiting", copies),
        ("Ask the same question elsewhere, with the YAML below in experiment.yaml", elsewhere),
    )
