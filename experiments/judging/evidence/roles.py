"""What each member of a system of several hosts showed: its figures from the samples, and a run's members in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.running.system import HOST, MEMBERS
from agents.spec import ApplicationDocument, Part, RunSpec
from agents.system import LOADED
from experiments.analysis.system_limit import SystemLimit, limit_of
from experiments.judging.evidence.observed import Channels, cpu_use
from experiments.models import Run
from experiments.registry.metrics.vocabulary import ROLE_FIGURES, role_figure

CHECK = "system_limit"
"""The finding that names the member that limits."""
_OF_THE_RUN = {"cpu_ratio": "sut_cpu_ratio", "server_cpu_ratio": "server_cpu_ratio"}
"""What the loaded server of a system has under the names of a single server alone; its memory has both names, for
trends and limits of before have that of its role."""


@dataclass(frozen=True)
class MemberFigures:
    """A member of the system that a run was of, the loaded server first; None = not seen.

    `cpu_ratio` is how busy the CPUs were that it may use (1.0 = all), `server_cpu_ratio` how many its processes used.
    Bytes per second are those of the network card that carried most.
    """

    role: str
    is_loaded: bool
    server: str
    host: str
    cpu_ratio: float | None
    server_cpu_ratio: float | None
    memory_used_bytes: float | None
    received_bytes_per_s: float | None
    sent_bytes_per_s: float | None


def role_figures(spec: RunSpec, channels: Channels, duration_s: float) -> dict[str, float]:
    """The figures of all members by their names in the run; {} for a single server, whose figures are the run's."""
    found: dict[str, float | None] = {}
    for part in spec.parts if spec.members else ():
        received, sent = _network(part, channels, duration_s)
        own = {
            "cpu_ratio": cpu_use(part.role, channels, duration_s),
            "server_cpu_ratio": channels.mean(part.role, ["process.cpu_ratio"], duration_s),
            "memory_used_bytes": channels.mean(part.role, ["memory.used_bytes"], duration_s),
            "received_bytes_per_s": received,
            "sent_bytes_per_s": sent,
        }
        found |= {
            role_figure(part.title, name): value
            for name, value in own.items()
            if part.role != LOADED or name not in _OF_THE_RUN
        }
    return {name: value for name, value in found.items() if value is not None}


def names_of_members(application: ApplicationDocument) -> tuple[str, ...]:
    """How the figures of `role_figures` are called in runs of this application; () of a single server."""
    if not application.members:
        return ()
    loaded = [role_figure(application.role or LOADED, name) for name in ROLE_FIGURES if name not in _OF_THE_RUN]
    return (*loaded, *(role_figure(role, name) for role in application.roles for name in ROLE_FIGURES))


def members_of(run: Run) -> tuple[MemberFigures, ...]:
    """The members of the system that the run was of, as its stored figures say; () for a single server."""
    if not _roles(run) or not run.spec:
        return ()
    spec = RunSpec.model_validate(run.spec)
    return tuple(_member(run.metrics, part) for part in spec.parts)


def loaded_role(run: Run) -> str:
    """What the loaded server of a system is called; "" for a single server."""
    return str(run.spec["application"].get("role") or LOADED) if _roles(run) and run.spec else ""


def limit_of_runs(runs: Sequence[Run]) -> SystemLimit | None:
    """Which member of a system is the limit, by the means of these runs; None for runs of a single server.

    Reads the specification of one of them, which lists leave in the database.
    """
    roles = _roles(runs[0]) if runs else ()
    if not roles or any(_roles(run) != roles for run in runs):
        return None
    uses = {loaded_role(runs[0]): _mean([run.sut_cpu_ratio for run in runs])}
    for role in roles:
        uses[role] = _mean([run.metrics.get(role_figure(role, "cpu_ratio")) for run in runs])
    return limit_of(uses, {role: _mean([_own_use(run, role) for run in runs]) for role in uses})


def _own_use(run: Run, role: str) -> float | None:
    """The share of a member's CPUs that its own processes used, as the run's finding about the limit has it."""
    evidence: dict[str, float] = next((found["evidence"] for found in run.findings if found["check"] == CHECK), {})
    use = evidence.get(f"{role}_own_cpu_ratio")
    return None if use is None else float(use)


def member_facts(run: Run) -> dict[str, dict[str, str]]:
    """Role of each further member of a system -> the facts of its host, as the run captured them. Needs `config`."""
    values = run.config.values if run.config else {}
    return {
        role: {path.removeprefix(prefix): value for path, value in values.items() if path.startswith(prefix)}
        for role in _roles(run)
        for prefix in [f"{MEMBERS}{role}.{HOST}."]
    }


def _roles(run: Run) -> tuple[str, ...]:
    """The roles of the further members; () for a single server, without reading its specification."""
    return tuple(run.drivers.member_ids) if run.drivers else ()


def _member(metrics: Mapping[str, float], part: Part) -> MemberFigures:
    def figure(name: str) -> float | None:
        stored = _OF_THE_RUN.get(name) if part.role == LOADED else None
        return metrics.get(stored or role_figure(part.title, name))

    return MemberFigures(
        part.title,
        part.role == LOADED,
        str(part.server.kind),
        part.host.name,
        figure("cpu_ratio"),
        figure("server_cpu_ratio"),
        figure("memory_used_bytes"),
        figure("received_bytes_per_s"),
        figure("sent_bytes_per_s"),
    )


def _network(part: Part, channels: Channels, duration_s: float) -> tuple[float | None, float | None]:
    """Bytes per second received and sent by the card that carried most; the loopback only where there is no other."""
    cards = {name.removesuffix(".rx_bytes_per_s") for name in channels.names(part.role, "network.")}
    cards = {card for card in cards if not card.endswith("_per_s")}
    cards = cards - {"network.lo"} or cards
    seen = [
        tuple(channels.mean(part.role, [f"{card}.{way}_bytes_per_s"], duration_s) for way in ("rx", "tx"))
        for card in sorted(cards)
    ]
    received, sent = max(seen, key=lambda pair: sum(value or 0.0 for value in pair), default=(None, None))
    return received, sent


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
