"""CPU sets for server and load tool on one machine: proposed for a form, and put into versions of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.asking.launching.choices import Choice, filled_in
from experiments.asking.launching.cpu_sets import CpuSets, kept_cpus, propose, shared_cpus
from experiments.models import Application, Host, Member, Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.versions import save_version
from experiments.registry.hosts.machines import are_one

NOTE = "CPU sets for server and load tool on one machine."


def on_one_machine(choice: Choice) -> bool:
    """Whether a load tool would run on the machine of the server, as far as that is known."""
    return any(_one(choice.sut, driver) for driver in choice.drivers)


def proposal(choices: Sequence[Choice]) -> CpuSets | None:
    """CPU sets for all of these, when those that they have overlap on a machine. RequestError for what cannot run."""
    setups = [(filled_in(choice), choice.sut) for choice in choices if on_one_machine(choice)]
    if not any(shared_cpus(spec, sut) for spec, sut in setups):
        return None
    return propose(setups)


def bound(member: Member, choice: Choice, sets: CpuSets) -> tuple[Application, Workload]:
    """The choice's application and workload with these CPU sets: versions for these runs alone (`save_version`).

    The application stays as it is where its recipe or its instances say where the server runs.
    """
    application = choice.application
    if sets.server and on_one_machine(choice) and not kept_cpus(filled_in(choice)):
        body = _body(application)
        body["server"]["cpus"] = sets.server
        application = save_version(member, Application, application.name, body, note=NOTE, one_off=True)
    load = _body(choice.workload) | {"cpus": sets.tool}
    return application, save_version(member, Workload, choice.workload.name, load, note=NOTE, one_off=True)


def _body(document: Application | Workload) -> dict[str, Any]:
    body: dict[str, Any] = content_of(document).model_dump(mode="json", by_alias=True)
    return body


def _one(sut: Host, driver: Host) -> bool:
    """Hosts with one address are one machine until they have shown otherwise."""
    unseen = sut.machine_id is None or driver.machine_id is None
    return are_one(sut, driver) or (unseen and sut.address == driver.address)
