"""Applications, recipes and workloads have the same pages; this is what differs between them."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from experiments.models import Application, Document, Recipe, Workload
from experiments.registry.documents.contents import SCHEMAS


@dataclass(frozen=True)
class Kind:
    """`plural` is the first word of the path and the URL name of the list, `singular` that of a version's page."""

    plural: str
    singular: str
    model: type[Document]
    sentence: str

    @property
    def schema(self) -> type[BaseModel]:
        return SCHEMAS[self.model]


_CALLED = {"command": "Any program"}


def kind_label(kind: str) -> str:
    """What people call a kind of server or load tool: its name, but for a command of their own."""
    return _CALLED.get(kind, kind)


KINDS: dict[str, Kind] = {
    kind.plural: kind
    for kind in (
        Kind("applications", "application", Application, "The server under test and how it is started."),
        Kind("recipes", "recipe", Recipe, "What is tuned on the SUT: steps that are applied, verified and put back."),
        Kind("workloads", "workload", Workload, "The load tool with its options, the path, and the phases."),
    )
}
