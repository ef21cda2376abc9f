"""What a request costs in energy, on the machines of the servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.monitors.energy import WATTS
from agents.record import Record
from agents.spec import RunSpec
from experiments.judging.evidence.channels import Channels


def energy_j_per_request(
    spec: RunSpec, record: Record, report: Mapping[str, Any], channels: Channels, duration_s: float
) -> float | None:
    """Joules per request of all machines that serve, each once, idle power included.

    None unless the load follows a schedule: with less load a request seems dearer, so that only runs of one offered
    rate compare. None, too, where a machine does not tell its power, or where a load tool ran on it.
    """
    throughput = report.get("throughput_rps")
    if report.get("load_model") != "open" or not report.get("offered_rate_rps") or not throughput:
        return None
    machines = {record.facts[part.role].boot_id: part.role for part in spec.parts}
    loading = {record.facts[role].boot_id for role in spec.driver_roles}
    if None in machines or None in loading or loading & machines.keys():  # without its boot nobody knows which it is
        return None
    watts = [channels.mean(role, [WATTS], duration_s) for role in machines.values()]
    known = [one for one in watts if one is not None]
    return sum(known) / throughput if len(known) == len(watts) else None
