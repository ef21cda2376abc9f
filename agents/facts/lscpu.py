"""The processors of a host, from lscpu: its text in every age, and its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agents.base.command import Command, script
from agents.base.cpuset import format_cpus, parse_cpus
from agents.base.errors import ParseError
from agents.facts.base import Fact, Section, decode, known

SCRIPT = "LC_ALL=C lscpu"

_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(B|K|M|G|KiB|MiB|GiB)?(?: \([0-9]+ instances?\))?", re.ASCII)
_BYTES_PER = {"": 1, "B": 1, "K": 2**10, "KiB": 2**10, "M": 2**20, "MiB": 2**20, "G": 2**30, "GiB": 2**30}
_CACHE = re.compile(r"(L[0-9][a-z]?) cache")
_NODE = re.compile(r"NUMA node([0-9]{1,5}) CPU\(s\)", re.ASCII)
_INTEGER = re.compile(r"[0-9]{1,9}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", re.ASCII)


@dataclass(frozen=True)
class Cache:
    """`size_bytes` is the sum over all instances in newer lscpu, and one instance in the older ("32K")."""

    text: str
    size_bytes: int


@dataclass(frozen=True)
class Lscpu:
    """What lscpu says. `bogomips` and `mhz` change from boot to boot and from moment to moment."""

    architecture: str
    cpus: int
    byte_order: str | None = None
    online_cpus: tuple[int, ...] | None = None
    offline_cpus: tuple[int, ...] | None = None
    vendor: str | None = None
    model_name: str | None = None
    stepping: str | None = None
    threads_per_core: int | None = None
    cores_per_socket: int | None = None
    sockets: int | None = None
    numa_nodes: int | None = None
    mhz: float | None = None
    mhz_max: float | None = None
    bogomips: float | None = None
    hypervisor: str | None = None
    virtualization: str | None = None
    caches: Mapping[str, Cache] = field(default_factory=dict)
    numa: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    vulnerabilities: Mapping[str, str] = field(default_factory=dict)

    def stable(self) -> dict[str, str]:
        out = known(
            cpu__architecture=self.architecture,
            cpu__count=self.cpus,
            cpu__byte_order=self.byte_order,
            cpu__vendor=self.vendor,
            cpu__model=self.model_name,
            cpu__stepping=self.stepping,
            cpu__threads_per_core=self.threads_per_core,
            cpu__cores_per_socket=self.cores_per_socket,
            cpu__sockets=self.sockets,
            cpu__numa_nodes=self.numa_nodes,
            cpu__mhz_max=self.mhz_max,
            cpu__flags=" ".join(sorted(self.flags)),
            hypervisor__vendor=self.hypervisor,
            hypervisor__type=self.virtualization,
        )
        if self.online_cpus is not None:
            out["cpu.online"] = format_cpus(self.online_cpus)
            out["cpu.offline"] = format_cpus(self.offline_cpus or ())
        out.update({f"cpu.cache.{name}_bytes": str(cache.size_bytes) for name, cache in self.caches.items()})
        out.update({f"cpu.numa.node{node}": format_cpus(cpus) for node, cpus in self.numa.items()})
        out.update({f"cpu.vulnerability.{name}": text for name, text in self.vulnerabilities.items()})
        return out

    def volatile(self) -> dict[str, str]:
        return known(cpu__mhz=self.mhz, cpu__bogomips=self.bogomips)


def command() -> Command:
    return script(SCRIPT)


def parse(output: bytes) -> Lscpu:
    """What lscpu says, as text or JSON. Raises ParseError when architecture or CPU count is missing."""
    text = decode(output)
    fields = dict(_json_fields(text) if text.lstrip().startswith("{") else _text_fields(text))
    architecture, cpus = fields.get("Architecture"), _integer(fields, "CPU(s)")
    if not architecture or not cpus:
        raise ParseError("this is not the output of lscpu: no architecture or no number of CPUs in it", line=1)
    return Lscpu(
        architecture=architecture,
        cpus=cpus,
        byte_order=fields.get("Byte Order"),
        online_cpus=_cpus(fields, "On-line CPU(s) list"),
        offline_cpus=_cpus(fields, "Off-line CPU(s) list"),
        vendor=_text(fields, "Vendor ID"),
        model_name=_text(fields, "Model name"),
        stepping=_text(fields, "Stepping"),
        threads_per_core=_integer(fields, "Thread(s) per core"),
        cores_per_socket=_integer(fields, "Core(s) per socket"),
        sockets=_integer(fields, "Socket(s)"),
        numa_nodes=_integer(fields, "NUMA node(s)"),
        mhz=_decimal(fields, "CPU MHz"),
        mhz_max=_decimal(fields, "CPU max MHz"),
        bogomips=_decimal(fields, "BogoMIPS"),
        hypervisor=fields.get("Hypervisor vendor"),
        virtualization=fields.get("Virtualization type"),
        caches=_caches(fields),
        numa=_numa(fields),
        flags=tuple(fields.get("Flags", "").split()),
        vulnerabilities={
            name.removeprefix("Vulnerability ").lower().replace(" ", "_"): text
            for name, text in fields.items()
            if name.startswith("Vulnerability ")
        },
    )


def _text_fields(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _json_fields(text: str) -> Iterator[tuple[str, str]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the JSON of lscpu cannot be read: {error}", line=getattr(error, "lineno", 1)) from error
    waiting = [document.get("lscpu")]
    while waiting:
        entries = waiting.pop()
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict):
                continue
            name, value = entry.get("field"), entry.get("data")
            if isinstance(name, str) and isinstance(value, str):
                yield name.strip().removesuffix(":"), value.strip()
            waiting.append(entry.get("children"))


def _text(fields: Mapping[str, str], name: str) -> str | None:
    value = fields.get(name)
    return None if value in (None, "", "-") else value


def _integer(fields: Mapping[str, str], name: str) -> int | None:
    value = fields.get(name, "")
    return int(value) if _INTEGER.fullmatch(value) else None


def _decimal(fields: Mapping[str, str], name: str) -> float | None:
    value = fields.get(name, "")
    return float(value) if _DECIMAL.fullmatch(value) else None


def _cpus(fields: Mapping[str, str], name: str) -> tuple[int, ...] | None:
    if name not in fields:
        return None
    try:
        return parse_cpus(fields[name])
    except ValueError as error:
        raise ParseError(f"lscpu, '{name}': {error}", line=1) from error


def _caches(fields: Mapping[str, str]) -> dict[str, Cache]:
    caches = {}
    for name, value in fields.items():
        label, size = _CACHE.fullmatch(name), _SIZE.fullmatch(value)
        if label and size:
            size_bytes = round(float(size[1]) * _BYTES_PER[size[2] or ""])
            caches[label[1].lower()] = Cache(value, size_bytes)
    return caches


def _numa(fields: Mapping[str, str]) -> dict[int, tuple[int, ...]]:
    nodes = {}
    for name in fields:
        if match := _NODE.fullmatch(name):
            nodes[int(match[1])] = _cpus(fields, name) or ()
    return nodes


FACT = Fact(
    "lscpu",
    command(),
    parse,
    (
        Section(
            "cpu.",
            "CPU",
            first=(
                "cpu.model",
                "cpu.vendor",
                "cpu.architecture",
                "cpu.count",
                "cpu.online",
                "cpu.offline",
                "cpu.sockets",
                "cpu.cores_per_socket",
                "cpu.threads_per_core",
            ),
            folded=("cpu.flags", "cpu.vulnerability."),
        ),
        Section("hypervisor.", "CPU", says_prefix=True),
    ),
)
