"""Sets kernel parameters; what counts is the value that the kernel shows afterwards."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

_ALLOWED = re.compile(
    r"(?:net\.(?:core|ipv4|ipv6|unix|netfilter|mptcp)\.|vm\."
    r"|fs\.(?:file-max|nr_open|aio-max-nr|pipe-|inotify\.|epoll\.)"
    r"|kernel\.(?:sched_|numa_balancing|pid_max|threads-max|timer_migration|nmi_watchdog|watchdog|perf_event_"
    r"|randomize_va_space|sem|shm|msg))[a-z0-9_A-Z.\-]*"
)
# Actions rather than settings, or settings whose writing changes others: none of them can be put back.
_REFUSED = re.compile(
    r"vm\.(?:drop_caches|compact_memory|stat_refresh)|net\.ipv[46]\.route\.flush|net\.ipv4\.ip_forward"
    r"|net\.ipv[46]\.conf\.[^.]+\.(?:mc_)?forwarding|net\.ipv6\.conf\.[^.]+\.disable_ipv6"
)
_NAME = re.compile(r"[a-z]+(?:\.[A-Za-z0-9_\-]+)+")
_VALUE = re.compile(r"[A-Za-z0-9_.,:/+\- ]{1,256}")

READ_ONLY = "read-only"

PAIRS = (
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
)
"""Two names for one setting: writing one to a value sets the other to 0."""

_LISTS = ("net.ipv4.ip_local_reserved_ports", "kernel.watchdog_cpumask")
"""The kernel sorts these and joins neighbours: 3,1,2 reads back as 1-3."""

_OTHER = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}

_PROBE = """
root=$1
shift
for key; do
  file=$root/sys/$(printf %s "$key" | tr . /)
  if [ -f "$file" ] && value=$(cat "$file"); then
    printf '%s=%s\\n' "$key" "$(printf %s "$value" | tr '\\t\\n' '  ')"
    case $(stat -c %A "$file") in *w*) [ -w "$file" ] || echo "$key read-only";; *) echo "$key read-only";; esac
  else echo "$key absent"; fi
done 2>/dev/null
"""

# A value that the kernel refuses is no failure of the command: it is seen when the value is read back.
_WRITE = """
root=$1
shift
for pair; do
  file=$root/sys/$(printf %s "${pair%%=*}" | tr . /)
  if [ -f "$file" ]; then printf '%s\\n' "${pair#*=}" >"$file" || echo "the kernel refused $pair" >&2; fi
done
:
"""


def _key(name: str) -> str:
    if not _NAME.fullmatch(name) or not _ALLOWED.fullmatch(name):
        raise ValueError(f"'{name}' is not a kernel parameter that a recipe may set")
    if _REFUSED.fullmatch(name):
        raise ValueError(f"'{name}' cannot be put back afterwards, so a recipe may not set it")
    return name


def _normal(value: object) -> object:
    """YAML writes a number where the kernel has text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _value(value: str) -> str:
    value = " ".join(_number(part) for part in re.split(r"[ \t]+", value) if part)
    if not _VALUE.fullmatch(value):
        raise ValueError("a value is made of letters, digits, spaces and . , : / + - _")
    return value


def _number(word: str) -> str:
    """A number as the kernel shows it: 0x10 is 16. It reads 010 as 8, which nobody means."""
    if re.fullmatch(r"0[0-9]+", word):
        raise ValueError(f"{word} is octal to the kernel: write the number without the leading zero")
    return str(int(word, 16)) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", word) else word


class SysctlStep(HostStep):
    """Sets the kernel parameters in `values`; tabs and spaces in a value are the same."""

    independent: ClassVar[bool] = True
    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("sets kernel parameters that tune and can be put back", data=("values",))

    kind: Literal["sysctl"] = "sysctl"
    values: dict[
        Annotated[str, AfterValidator(_key)], Annotated[str, BeforeValidator(_normal), AfterValidator(_value)]
    ] = Field(min_length=1, max_length=200)

    @model_validator(mode="after")
    def _one_of_a_pair(self) -> SysctlStep:
        for first, second in PAIRS:
            if first in self.values and second in self.values:
                raise ValueError(f"{first} and {second} are one setting: give only one of them")
        return self

    def title(self) -> str:
        first, value = next(iter(self.values.items()))
        more = f" and {len(self.values) - 1} more" if len(self.values) > 1 else ""
        return f"Kernel parameters {first} = {value}{more}"

    def parts(self) -> tuple[SysctlStep, ...]:
        return tuple(self.model_copy(update={"values": {key: value}}) for key, value in self.values.items())

    def explains(self, path: str) -> bool:
        key = path.removeprefix("sysctl.")
        return key in self.values or _OTHER.get(key) in self.values

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, context.procfs, *self._keys(), privileged=True)

    def parse(self, output: bytes) -> State:
        """Each parameter of the step, and under `read-only` those that this host shows but does not let anyone set.

        Raises ParseError when the host says nothing of one.
        """
        state: dict[str, str | None] = {}
        read_only = []
        for line in output.decode("utf-8", "replace").splitlines():
            key, equals, value = line.partition("=")
            name, _, word = line.partition(" ")
            if equals:
                state[key] = " ".join(value.split())
            elif word == READ_ONLY:
                read_only.append(name)
            else:
                state[name] = None
        if missing := [key for key in self._keys() if key not in state]:
            raise ParseError(f"the host said nothing about {', '.join(missing)}")
        return {**{key: state[key] for key in self._keys()}, READ_ONLY: " ".join(read_only)}

    def wanted(self, before: State) -> State:
        """The asked values, and 0 for the other name of a paired parameter."""
        pairs = {_OTHER[key]: "0" for key, value in self.values.items() if key in _OTHER and value != before.get(key)}
        return {**self.values, **pairs}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        if (unable := self._unable(before)) and self.unsupported == "fail":
            raise PlanError(
                f"this host does not let anyone set {', '.join(f'{key} ({why})' for key, why in unable.items())}",
                hint="Take it out of the recipe, or set unsupported: skip on the step.",
            )
        values = [(k, v) for k, v in self.values.items() if k not in unable and v != before[k]]
        return _write(context, values)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        fixed = (before[READ_ONLY] or "").split()
        keys = [key for key in reversed(self._keys()) if key not in fixed and not _out_of_force(key, before)]
        old = [(key, before[key]) for key in keys]
        return _write(context, [(key, value) for key, value in old if value is not None])

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return tuple(key for key in super().differing(before, now) if key != READ_ONLY)

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        unable = self._unable(before)
        asked = [outcome for outcome in super().outcomes(before, after) if outcome.setting in self.values]
        return tuple(_explained(outcome, unable.get(outcome.setting)) for outcome in asked)

    def _unable(self, before: State) -> dict[str, str]:
        """The parameters that this host lacks or does not let anyone change, with the reason."""
        read_only = (before[READ_ONLY] or "").split()
        absent = {key: "this kernel does not have it" for key in self.values if before[key] is None}
        fixed = {k: "read-only on this host" for k, v in self.values.items() if k in read_only and v != before[k]}
        return absent | fixed

    def _keys(self) -> list[str]:
        return list(dict.fromkeys(name for key in self.values for name in (key, _OTHER.get(key, key))))


def _explained(outcome: SettingOutcome, unable: str | None) -> SettingOutcome:
    """The outcome with the reason for what did not become as asked."""
    if unable is not None:
        return replace(outcome, result="unsupported", detail=unable)
    if outcome.result != "refused" or outcome.wanted is None or outcome.effective is None:
        return outcome
    if outcome.setting in _LISTS and _members(outcome.wanted) == _members(outcome.effective):
        same = outcome.before is not None and _members(outcome.before) == _members(outcome.wanted)
        return replace(outcome, result="unchanged" if same else "applied")
    kept = outcome.effective == outcome.before
    return replace(outcome, detail="the kernel kept the old value" if kept else "the kernel rounded or limited it")


def _members(text: str) -> set[int]:
    """The numbers of a list such as 1-3,8080; a port has up to five digits."""
    numbers: set[int] = set()
    for first, last in re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", text):
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def _out_of_force(key: str, state: State) -> bool:
    """Whether the other member of a pair is the one that counts; the kernel takes no 0 for some of them."""
    return state[key] == "0" and key in _OTHER and state[_OTHER[key]] not in (None, "0")


def _write(context: StepContext, values: list[tuple[str, str]]) -> tuple[Command, ...]:
    if not values:
        return ()
    return (script(_WRITE, context.procfs, *(f"{key}={value}" for key, value in values), privileged=True),)
