"""The links of a run to other tools: the templates of its team and of its hosts, filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from experiments.models import Host, Run
from experiments.registry.runs.windows import Window, measured_window, unix_ms, whole_window
from experiments.registry.teams.link_templates import OF_A_HOST, LinkTemplate, templates_of


@dataclass(frozen=True)
class RunLink:
    """`host`: the name of the host that it is of; "" when it is of the whole run."""

    name: str
    url: str
    host: str = ""


def links_elsewhere(run: Run, now: datetime) -> tuple[RunLink, ...]:
    """The team's first, then each host's own. A template whose placeholder has no value for this run is left out.

    None of a run that never started here: it has no window.
    """
    team, parts = templates_of(run.team.link_templates), _parts(run)
    own = {role: templates_of(host.link_templates) for role, host in parts.items()}
    window = whole_window(run, now) if team or any(own.values()) else None
    if window is None:
        return ()
    values = _of_the_run(run, window, measured_window(run))
    of_hosts = {role: {**values, **_of_a_host(role, host)} for role, host in parts.items()}
    found = [*_of_the_team(team, values, of_hosts)]
    for role, templates in own.items():
        found += _filled(templates, of_hosts[role], of_hosts[role]["host"])
    return tuple(dict.fromkeys(found))


def _of_the_team(
    templates: tuple[LinkTemplate, ...], values: Mapping[str, str], of_hosts: Mapping[str, Mapping[str, str]]
) -> Iterator[RunLink]:
    for template in templates:
        if template.placeholders.isdisjoint(OF_A_HOST):
            yield from _filled((template,), values)
        else:
            for of_host in of_hosts.values():
                yield from _filled((template,), of_host, of_host["host"])


def _filled(templates: tuple[LinkTemplate, ...], values: Mapping[str, str], host: str = "") -> Iterator[RunLink]:
    for template in templates:
        url = template.filled(values)
        if url is not None:
            yield RunLink(template.name, url, host)


def _parts(run: Run) -> dict[str, Host]:
    """Role -> host, as the run's specification names the roles."""
    found = {"sut": run.sut} if run.sut else {}
    if run.drivers:
        found |= run.drivers.members
        found |= {f"driver-{n}" if n > 1 else "driver": host for n, host in enumerate(run.drivers.in_order, start=1)}
    return found


def _of_a_host(role: str, host: Host) -> dict[str, str]:
    return {"host": host.name, "address": host.address, "role": role}


def _of_the_run(run: Run, whole: Window, measured: Window | None) -> dict[str, str]:
    documents = {"application": run.application, "recipe": run.recipe, "workload": run.workload}
    return {
        **_moments("", whole),
        **(_moments("measured_", measured) if measured else {}),
        "run": str(run.number),
        "team": run.team.slug,
        **({"experiment": str(run.experiment_id)} if run.experiment_id else {}),
        **{name: document.name for name, document in documents.items() if document},
    }


def _moments(prefix: str, window: Window) -> dict[str, str]:
    found = {}
    for name, moment in (("from", window.start), ("to", window.end)):
        found[f"{prefix}{name}_ms"] = str(unix_ms(moment))
        found[f"{prefix}{name}_s"] = str(unix_ms(moment) // 1000)
        iso = moment.astimezone(UTC).isoformat(timespec="milliseconds")
        found[f"{prefix}{name}_iso"] = iso.replace("+00:00", "Z")
    return found
