"""How the CPUs choose their frequency: governor, energy preference, turbo."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import StringConstraints, model_validator

from agents.base.command import Command
from agents.base.cpuset import CpuSet, format_cpus, parse_cpus
from agents.base.errors import PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.settings_files import parse_settings, read_settings, write_settings
from agents.steps.base.step import HostStep, State, StepContext

Word = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,32}$")]

GOVERNOR, PREFERENCE = "scaling_governor", "energy_performance_preference"
_CHOICES = {GOVERNOR: "scaling_available_governors", PREFERENCE: "energy_performance_available_preferences"}
_TURBO = {"cpufreq/boost": {"1": "on", "0": "off"}, "intel_pstate/no_turbo": {"0": "on", "1": "off"}}
_OF_CPU = re.compile(r"cpu(\d{1,4})/cpufreq/([a-z_]+)")

PATTERNS = (
    *(f"cpu[0-9]*/cpufreq/{name}" for name in (*_CHOICES, *_CHOICES.values())),
    *_TURBO,
    "present",
)


class GovernorStep(HostStep):
    """Sets the frequency governor, the energy preference and turbo, of every CPU or of `cpus`. Offline ones stay."""

    sets_clock: ClassVar[bool] = True
    rights: ClassVar[Rights] = Rights("sets frequencies", data=("governor", "energy_performance_preference", "cpus"))

    kind: Literal["governor"] = "governor"
    governor: Word | None = None
    energy_performance_preference: Word | None = None
    turbo: bool | None = None
    cpus: CpuSet = ""

    @model_validator(mode="after")
    def _some(self) -> GovernorStep:
        if self.governor is None and self.energy_performance_preference is None and self.turbo is None:
            raise ValueError("give at least one of governor, energy_performance_preference, turbo")
        if self.cpus and not self._per_cpu():
            raise ValueError("turbo is a setting of the whole host: cpus belongs to the other two")
        return self

    def title(self) -> str:
        where = f" on CPUs {self.cpus}" if self.cpus else ""
        return "CPU frequency: " + ", ".join(f"{name} {value}" for name, value in self._asked().items()) + where

    def explains(self, path: str) -> bool:
        name = path.rpartition(".")[2]
        if name in ("turbo", "no_turbo", "boost"):
            return self.turbo is not None
        return name in (*_CHOICES, "governor") and bool(self._per_cpu())

    def probe(self, context: StepContext) -> Command:
        return read_settings(_root(context), PATTERNS)

    def parse(self, output: bytes) -> State:
        """`cpuN NAME` for each CPU that has it now, `turbo`, and what this host offers (`NAME choices`, `present`).

        The preference goes with the governor: a change of one may change the other.
        """
        mine = (GOVERNOR, PREFERENCE) if self.governor is not None else tuple(self._per_cpu())
        found = parse_settings(output)
        named = set(parse_cpus(self.cpus))
        settings: list[tuple[int, str, str]] = []
        choices: dict[str, dict[str, None]] = {}
        for path, value in found.items():
            match = _OF_CPU.fullmatch(path)
            if match is None:
                continue
            cpu, name = int(match[1]), match[2]
            if name in mine and (not named or cpu in named):
                settings.append((cpu, name, value))
            elif name not in _CHOICES:
                choices.setdefault(name, {}).update(dict.fromkeys(value.split()))
        state: dict[str, str | None] = {f"cpu{cpu} {name}": value for cpu, name, value in sorted(settings)}
        state |= {f"{name} choices": " ".join(choices.get(of, ())) or None for name, of in _CHOICES.items()}
        turbo = [words[found[path]] for path, words in _TURBO.items() if found.get(path) in words]
        return {**state, "turbo": turbo[0] if turbo else None, "present": found.get("present")}

    def wanted(self, before: State) -> State:
        wanted: dict[str, str | None] = {}
        for name, value in self._per_cpu().items():
            keys = [key for key in before if key.startswith("cpu") and key.endswith(f" {name}")]
            wanted |= dict.fromkeys(keys or [name], value)
        return wanted if self.turbo is None else {**wanted, "turbo": "on" if self.turbo else "off"}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        unable = self._unable(before)
        if unable and self.unsupported == "fail":
            raise PlanError(
                f"CPU frequency: {'; '.join(unable.values())}",
                hint="Correct the recipe, or set unsupported: skip on the step.",
            )
        wanted = self.wanted(before).items()
        return _write(context, [(k, v) for k, v in wanted if v is not None and _name(k) not in unable], before)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        # Governors first: with some of them the kernel takes no preference.
        keys = sorted((key for key in before if _is_cpu(key)), key=lambda key: _name(key) != GOVERNOR)
        old = [(key, value) for key in keys if (value := before[key]) is not None]
        if self.turbo is not None and (turbo := before["turbo"]) is not None:
            old.append(("turbo", turbo))
        return write_settings(_root(context), _files(old))

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return tuple(key for key in super().differing(before, now) if _is_cpu(key) or key == "turbo")

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        """One line for all CPUs that fared alike."""
        unable = self._unable(before)
        alike: dict[tuple[str, str | None, str | None, str | None], list[int]] = {}
        for key, wanted in self.wanted(before).items():
            cpus = alike.setdefault((_name(key), wanted, before.get(key), after.get(key)), [])
            cpus += [int(key.split()[0].removeprefix("cpu"))] if _is_cpu(key) else []
        outcomes = []
        for (name, wanted, was, now), cpus in alike.items():
            result: Result = "refused"
            if name in unable:
                result = "unsupported"
            elif now == wanted:
                result = "unchanged" if was == wanted else "applied"
            setting = f"{name} of CPUs {format_cpus(cpus)}" if cpus else name
            outcomes.append(SettingOutcome(setting, wanted, was, now, result, unable.get(name, "")))
        return tuple(outcomes)

    def _per_cpu(self) -> dict[str, str]:
        every = {GOVERNOR: self.governor, PREFERENCE: self.energy_performance_preference}
        return {name: value for name, value in every.items() if value is not None}

    def _asked(self) -> dict[str, str]:
        asked = {name.removeprefix("scaling_").replace("_", " "): value for name, value in self._per_cpu().items()}
        return asked if self.turbo is None else {**asked, "turbo": "on" if self.turbo else "off"}

    def _unable(self, before: State) -> dict[str, str]:
        """The settings that cannot be made on this host, with the reason."""
        unable = {}
        missing = set(parse_cpus(self.cpus)) - set(parse_cpus(before.get("present") or self.cpus))
        for name, value in self._per_cpu().items():
            offered = before[f"{name} choices"]
            if missing:
                unable[name] = f"CPUs {format_cpus(list(missing))} do not exist on this host"
            elif not any(key.endswith(f" {name}") and _is_cpu(key) for key in before):
                unable[name] = f"this host has no {name}"
            elif offered is not None and value not in offered.split() and not value.isdigit():
                unable[name] = f"this host has no {name} {value}, it offers {', '.join(offered.split())}"
        if self.turbo is not None and before["turbo"] is None:
            unable["turbo"] = "this host has no switch for turbo"
        return unable


def _root(context: StepContext) -> str:
    return f"{context.sysfs}/devices/system/cpu"


def _is_cpu(key: str) -> bool:
    return re.match(r"cpu\d+ ", key) is not None


def _name(key: str) -> str:
    return key.split()[-1]


def _write(context: StepContext, wanted: list[tuple[str, str]], before: State) -> tuple[Command, ...]:
    return write_settings(_root(context), _files([(key, value) for key, value in wanted if before[key] != value]))


def _files(values: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The files behind the state's keys. A host has one of the two files for turbo; the other one is skipped."""
    files = []
    for key, value in values:
        if key == "turbo":
            files += [(path, raw) for path, words in _TURBO.items() for raw, word in words.items() if word == value]
        else:
            cpu, name = key.split()
            files.append((f"{cpu}/cpufreq/{name}", value))
    return files
