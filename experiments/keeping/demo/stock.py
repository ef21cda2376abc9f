"""The made-up hosts, documents and configurations that seeded runs refer to; marked as demo, never launched on."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from experiments.asking.launching.choices import Choice, freeze
from experiments.asking.library import catalogue
from experiments.keeping.demo.made_up import digest_of
from experiments.models import Application, ConfigSnapshot, DriverSet, HardwareProfile, Host, Recipe, Team, Workload
from experiments.models.documents import Document
from experiments.registry.documents.contents import SCHEMAS
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.runs.snapshots import content_digest

SUTS = {"seed-sut-arm64": (64, "aarch64"), "seed-sut-x86-a": (32, "x86_64"), "seed-sut-x86-b": (16, "x86_64")}
DRIVERS = ("seed-driver-1", "seed-driver-2")
CONNECTIONS = {"HelloWorld, 32 connections": 32, "REST read, 128 connections": 128, "REST write, 512 connections": 512}
KERNELS = ("6.1.0-37", "6.6.14-1", "6.12.38-1", "6.17.4-2")
CONFIG_KEYS = 900
"""As many settings as a real run records (mostly sysctls)."""

D = TypeVar("D", bound=Document)


@dataclass(frozen=True)
class Line:
    """What a series keeps fixed while the recipe may vary: who serves, what is asked, and where."""

    application: Application
    workload: Workload
    sut: Host
    drivers: DriverSet
    profile: HardwareProfile
    sut_position: int

    @property
    def fingerprint(self) -> str:
        return digest_of(f"seeded {self.application.pk} {self.workload.pk} {self.sut.pk}")

    @property
    def connections(self) -> int:
        return int(self.workload.body["driver"]["connections"])

    def spec(self, recipe: Recipe) -> dict[str, Any]:
        return freeze(Choice(self.application, recipe, self.workload, self.sut, self.drivers.in_order)).model_dump(
            mode="json"
        )


@dataclass(frozen=True)
class Stock:
    """Everything that the runs of one team choose from."""

    lines: tuple[Line, ...]
    recipes: tuple[Recipe, ...]
    specs: Mapping[tuple[int, int], Mapping[str, Any]]
    """By position of the line and of the recipe."""
    configs: Mapping[tuple[int, int, int], ConfigSnapshot]
    """By position of the SUT, of the recipe and of the kernel."""


def stock_of(team: Team) -> Stock:
    """The team's made-up stock, stored when it is not there yet."""
    profiles = [_profile(team, name, cpus, machine) for name, (cpus, machine) in SUTS.items()]
    suts = [_host(team, name, f"192.0.2.{10 + at}", Host.Roles.SUT, profiles[at]) for at, name in enumerate(SUTS)]
    drivers = [_host(team, name, f"192.0.2.{100 + at}", Host.Roles.DRIVER, None) for at, name in enumerate(DRIVERS)]
    applications = [_application(team, major) for major in (10, 11)]
    workloads = [_workload(team, name, connections) for name, connections in CONNECTIONS.items()]
    recipes = tuple(
        _document(Recipe, team, f"Seeded: {name}", catalogue.recipe(name).document.model_dump(mode="json"))
        for name in ("tomcat-access-log-off", "tomcat-default", "tomcat-threads-per-cpu")
    )
    lines = tuple(
        Line(application, workload, sut, driver_set((drivers[at % len(drivers)],)), profiles[at], at)
        for application in applications
        for workload in workloads
        for at, sut in enumerate(suts)
    )
    configs = {
        (at, position, kernel): _config(team, sut.name, recipe.name, KERNELS[kernel])
        for at, sut in enumerate(suts)
        for position, recipe in enumerate(recipes)
        for kernel in range(len(KERNELS))
    }
    specs = {
        (at_line, at_recipe): line.spec(recipe)
        for at_line, line in enumerate(lines)
        for at_recipe, recipe in enumerate(recipes)
    }
    return Stock(lines, recipes, specs, configs)


def _profile(team: Team, name: str, cpus: int, machine: str) -> HardwareProfile:
    facts = {
        "cpu.model": f"made-up {machine}",
        "cpu.architecture": machine,
        "cpu.online": f"0-{cpus - 1}",
        "cpu.threads": str(cpus),
        "memory.total_bytes": str(cpus << 32),
    }
    profile, _ = HardwareProfile.objects.get_or_create(
        team=team, digest=digest_of(f"seeded {name}"), defaults={"facts": facts}
    )
    return profile


def _host(team: Team, name: str, address: str, roles: str, profile: HardwareProfile | None) -> Host:
    blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + hashlib.sha256(name.encode()).digest()
    host, _ = Host.objects.get_or_create(
        team=team,
        name=name,
        defaults={
            "address": address,  # 192.0.2.0/24 is for documentation: nobody answers there
            "user": "nobody",
            "roles": roles,
            "host_key": f"ssh-ed25519 {base64.b64encode(blob).decode()}",
            "state": Host.State.DRAINED,
            "state_reason": "A made-up host of seed_runs; it does not exist.",
            "profile": profile,
            "is_demo": True,
        },
    )
    return host


def _application(team: Team, major: int) -> Application:
    server = {"kind": "tomcat", "home": f"/opt/tomcat-{major}", "open_examples": True}
    return _document(Application, team, f"Seeded: Tomcat {major}", {"server": server})


def _workload(team: Team, name: str, connections: int) -> Workload:
    phases = [
        {"name": "warm-up", "kind": "warm_up", "duration_s": 15},
        {"name": "measure", "kind": "measure", "duration_s": 60},
    ]
    driver = {"kind": "wrk", "connections": connections, "threads": 16}
    return _document(Workload, team, f"Seeded: {name}", {"driver": driver, "path": "/examples/", "phases": phases})


def _document(model: type[D], team: Team, name: str, body: Mapping[str, Any]) -> D:
    stored = SCHEMAS[model].model_validate(dict(body)).model_dump(mode="json", by_alias=True)
    given = {"body": stored, "is_demo": True}
    document, _ = model._default_manager.get_or_create(team=team, name=name, version=1, defaults=given)
    return cast(D, document)


def _config(team: Team, sut: str, recipe: str, kernel: str) -> ConfigSnapshot:
    """An effective configuration: most of it is the same everywhere, some of it follows host, recipe and kernel."""
    values = {f"sysctl.made_up.key_{key:03}": str(_number(f"{key}") % 65536) for key in range(CONFIG_KEYS)}
    values["sut.kernel.release"] = kernel
    values["sut.name"] = sut
    values["tomcat.server_xml.Server/Service/Connector@maxThreads"] = "200" if "default" in recipe else "63"
    for turn in range(25):
        chosen = _number(f"{sut}/{recipe}/{kernel}/{turn}")
        values[f"sysctl.made_up.key_{chosen % CONFIG_KEYS:03}"] = str(chosen % 65521)
    config, _ = ConfigSnapshot.objects.get_or_create(
        team=team, digest=content_digest(values), defaults={"values": values}
    )
    return config


def _number(text: str) -> int:
    return int(digest_of(text)[:8], 16)
