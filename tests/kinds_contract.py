"""A contract for import-linter: no kind of a registry knows another. It lists none, so that new ones are held too."""

from __future__ import annotations

import grimp
from importlinter.application import output
from importlinter.domain import fields
from importlinter.domain.contract import Contract, ContractCheck


class KindsContract(Contract):
    """Modules of `above` may import the kinds of `registry`, which may import `base`; all others are kinds."""

    type_name = "kinds"

    registry = fields.StringField()
    above = fields.ListField(subfield=fields.StringField())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        registry = str(self.registry)
        above = {str(name) for name in self.above}  # type: ignore[attr-defined]  # import-linter sets the value
        children = {child.removeprefix(f"{registry}.") for child in graph.find_children(registry)}
        kinds = children - above - {"base"}
        layers = [grimp.Layer(*above, independent=False)] if above else []
        layers += [grimp.Layer(*kinds, independent=True), grimp.Layer("base")]
        broken = graph.find_illegal_dependencies_for_layers(layers=layers, containers={registry})
        chains = sorted(f"{one.importer} imports {one.imported}" for one in broken)
        return ContractCheck(kept=not chains, metadata={"chains": chains})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for chain in check.metadata["chains"]:
            output.print_error(chain)
