"""What of a template does not fit the chosen hosts, from the facts that are known of them. Touches no host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from agents.base.cpuset import parse_cpus
from agents.base.errors import PlanError
from agents.drivers.concurrency import at_concurrency
from agents.drivers.shares import share_words
from agents.spec import WorkloadDocument
from agents.steps.recipe import Value
from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import ExperimentTemplate, Scale, TuningTemplate
from experiments.asking.library.install import Places, filled_in, settings_for
from experiments.asking.tunings.memory import check_memory
from experiments.asking.tunings.space import read_space, space_of
from experiments.judging.comparing.machines import machine_texts
from experiments.models import Host
from experiments.registry.errors import RequestError

GB = 1 << 30


@dataclass(frozen=True)
class Fit:
    """One finding: `warn` may still be launched, `fail` would fail or answer another question."""

    result: Literal["pass", "warn", "fail"]
    sentence: str


def fits(template: ExperimentTemplate, scale: Scale, places: Places, given: Mapping[str, Value]) -> list[Fit]:
    """What is known to fit and what does not, the worst first."""
    found: list[Fit] = []
    suts = [places.sut, *([places.other_sut] if places.other_sut and template.two_suts else [])]
    for sut in suts:
        found += _machine(template, scale, sut, given)
    if template.two_suts:
        found += _two_machines(template, places)
    found += _tools(template, places, suts)
    if isinstance(template, TuningTemplate):
        found += _memory_of_search(template, scale, places)
    if len(places.drivers) > 1:
        found += _shares(template, scale, places, given)
    order = {"fail": 0, "warn": 1, "pass": 2}
    return sorted(found, key=lambda one: order[one.result])


def _machine(template: ExperimentTemplate, scale: Scale, sut: Host, given: Mapping[str, Value]) -> Iterator[Fit]:
    facts = sut.profile.facts if sut.profile is not None else {}
    if not facts:
        yield Fit("warn", f"{sut.name}: its hardware is not known yet; test the connection once.")
        return
    needs = template.needs
    wanted_cpus = needs.published_cpus if scale == "published" else needs.cpus
    present = _cpus(facts)
    bound = {
        cpu
        for variant in template.variants_at(scale)
        for name, value in variant.parameters_at(scale).items()
        if name in ("cpus", "online_cpus")
        for cpu in parse_cpus(str(value))
    }
    if len(present) < wanted_cpus:
        yield Fit("fail", f"{sut.name} has {_count(present)}, this needs {wanted_cpus}: {_way_out(scale)}")
    elif missing := sorted(bound - present):
        yield Fit("fail", f"{sut.name} has no CPU {missing[0]}, to which a variant binds the server.")
    else:
        yield Fit("pass", f"{sut.name} has {_count(present)}; this needs {wanted_cpus}.")
    wanted_gb = needs.published_memory_gb if scale == "published" else needs.memory_gb
    memory_gb = int(facts.get("memory.total_bytes") or 0) / GB
    if memory_gb and memory_gb < wanted_gb:
        yield Fit("fail", f"{sut.name} has {memory_gb:.1f} GiB of memory, this needs {wanted_gb:g}: {_way_out(scale)}")
    if needs.java and not given.get("java_home"):
        yield from _java(sut, facts, needs.java)
    if needs.root and sut.user != "root":
        yield Fit(
            "warn", f"{sut.name} is used as {sut.user}: some steps need root, so this user needs sudo without password."
        )


def _memory_of_search(template: TuningTemplate, scale: Scale, places: Places) -> Iterator[Fit]:
    """What starting the search on these hosts would be refused for."""
    (variant,) = template.variants
    document = catalogue.recipe(variant.recipe).document
    space = space_of(read_space(template.space), document)
    try:
        check_memory(document, space, variant.parameters_at(scale), places.sut, places.members)
    except RequestError as error:
        yield Fit("fail", error.message)


def _java(sut: Host, facts: Mapping[str, str], wanted: int) -> Iterator[Fit]:
    on_path = _major(facts.get("java.path.version", ""))
    if on_path is not None and on_path >= wanted:
        yield Fit("pass", f"{sut.name} has Java {on_path} on its PATH; this needs {wanted}.")
        return
    others = {place: major for place, text in _installed(facts) if (major := _major(text)) and major >= wanted}
    has = f"has Java {on_path} on its PATH" if on_path else "has no Java on its PATH"
    if others:
        place = min(others)
        yield Fit("fail", f"{sut.name} {has}, this needs {wanted}: set java_home to {place} (Java {others[place]}).")
    else:
        yield Fit(
            "fail", f"{sut.name} {has}, this needs {wanted}: install it, and set java_home if it is not on the PATH."
        )


def _two_machines(template: ExperimentTemplate, places: Places) -> Iterator[Fit]:
    other = places.other_sut
    if other is None or other.pk == places.sut.pk:
        yield Fit("fail", "This compares two servers: choose another host for the second one.")
        return
    if places.sut.profile is None or other.profile is None:
        return  # said of each machine
    one, two = machine_texts([places.sut.profile.facts, other.profile.facts])
    told = [factor for factor in template.machines if one[factor] and two[factor]]
    differing = [f"{factor} ({one[factor]} / {two[factor]})" for factor in told if one[factor] != two[factor]]
    if differing:
        yield Fit("pass", f"The servers differ in {' and '.join(differing)}.")
    elif told:
        same = " and ".join(f"{factor} {one[factor]}" for factor in told)
        yield Fit("warn", f"Both servers have {same}, so this compares two machines and nothing else.")


def _tools(template: ExperimentTemplate, places: Places, suts: list[Host]) -> Iterator[Fit]:
    tools_of_drivers = ", ".join(template.needs.driver)
    needed = [(tools_of_drivers, driver.name) for driver in places.drivers if template.needs.driver]
    for tools, host in needed:
        yield Fit("warn", f"{host} must have {tools}; each run looks first, and names the package when it is missing.")
    for role, programs in template.needs.members.items():
        if role in places.members:
            host = places.members[role].name
            yield Fit("warn", f"{host} must have {', '.join(programs)}; without it a run fails and says so.")
    for sut in suts if template.needs.sut else ():
        yield Fit("warn", f"{sut.name} must have {', '.join(template.needs.sut)}; without it a run fails and says so.")


def _shares(template: ExperimentTemplate, scale: Scale, places: Places, given: Mapping[str, Value]) -> Iterator[Fit]:
    hosts = len(places.drivers)
    try:
        body = filled_in(catalogue.workload(template.workload.use), settings_for(template, scale, given))
        driver = WorkloadDocument.model_validate(body).driver
        counts = template.concurrency.at(scale) if template.concurrency else ()
        tools = [at_concurrency(driver, count) for count in counts] or [driver]
        words = "; ".join(share_words(tool, hosts) for tool in tools)
    except PlanError as error:
        yield Fit("fail", f"{error.message[:1].upper()}{error.message[1:]}.")
    except (RequestError, ValidationError):
        return  # a setting is missing or wrong, which is told at its field
    else:
        yield Fit("pass", f"Each of {hosts} driver hosts does its share: {words}.")


def _cpus(facts: Mapping[str, str]) -> set[int]:
    return {cpu for key in ("cpu.online", "cpu.offline") for cpu in parse_cpus(facts.get(key) or "")}


def _installed(facts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    prefix = "java.installed."
    return ((key.removeprefix(prefix), text) for key, text in facts.items() if key.startswith(prefix))


def _major(version: str) -> int | None:
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def _count(cpus: set[int]) -> str:
    return f"{len(cpus)} CPU{'' if len(cpus) == 1 else 's'}"


def _way_out(scale: Scale) -> str:
    return "choose the small scale." if scale == "published" else "choose a larger host."
