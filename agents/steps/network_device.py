"""What a network card does by itself (offloads), and how many packets it may hold (rings)."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import SettingOutcome
from agents.steps.base.step import HostStep, Program, State, StepContext

_PROBE = """
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
command -v ethtool >/dev/null || { echo 'no ethtool'; exit 0; }
there=
while IFS=': ' read -r name _; do [ "$name" != "$2" ] || there=yes; done <"$1/net/dev"
[ -n "$there" ] || { echo 'no interface'; exit 0; }
ethtool -k "$2" 2>/dev/null
ethtool -g "$2" 2>/dev/null
:
"""

# What the driver refuses is seen when it is read back.
_SET = """
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
interface=$1 option=$2
shift 2
ethtool "$option" "$interface" "$@" || echo "the driver of $interface refused $*" >&2
"""

_FEATURE = re.compile(r"\t?([a-z0-9_-]+): (on|off)(?: \[(fixed|requested on|requested off)\])?", re.ASCII)
_RING = re.compile(r"(RX|TX):\s+(\d+|n/a)")
FIXED = "the driver does not let it change"

OffloadName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


class NetworkDeviceStep(HostStep):
    """Switches offloads of a network interface, by the names that `ethtool -k` shows, and sets the lengths of its rings
    (`ethtool -g`). Some drivers take the link down for a moment when the rings change.
    """

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("nothing", whole="it changes the network cards through which the host is reached")

    kind: Literal["network_device"] = "network_device"
    interface: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}$")]
    offloads: dict[OffloadName, bool] = Field(default_factory=dict, max_length=100)
    rx_ring: int | None = Field(None, ge=1, le=1 << 20)
    tx_ring: int | None = Field(None, ge=1, le=1 << 20)

    @model_validator(mode="after")
    def _some(self) -> NetworkDeviceStep:
        if not self._asked():
            raise ValueError("give offloads, rx_ring or tx_ring")
        return self

    @property
    def programs(self) -> tuple[Program, ...]:
        return (Program("ethtool", "ethtool"),)

    def title(self) -> str:
        asked = [f"{name.removeprefix('offload ')} {value}" for name, value in self._asked().items()]
        more = f" and {len(asked) - 4} more" if len(asked) > 4 else ""
        return f"Network interface {self.interface}: {', '.join(asked[:4])}{more}"

    def explains(self, path: str) -> bool:
        return f"network.{self.interface}." in path and path.rpartition(".")[2] in self._asked()

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, context.procfs, self.interface, privileged=True)

    def parse(self, output: bytes) -> State:
        """`offload NAME` of every offload that can be switched, since one of them may take others along; which of the
        asked ones are `fixed`; the rings and their limits where a ring is asked. `host` says what is missing.
        """
        text = output.decode("utf-8", "replace")
        state: dict[str, str | None] = dict.fromkeys(self._asked())
        fixed = []
        for line in text.splitlines():
            if match := _FEATURE.fullmatch(line):
                if match[3] == "fixed":
                    fixed.append(match[1])
                if match[3] != "fixed" or f"offload {match[1]}" in state:
                    state[f"offload {match[1]}"] = match[2] + (f" [{match[3]}]" if "r" in (match[3] or "") else "")
        if self._rings():
            state |= _rings(text)
        state["fixed"] = " ".join(name for name in fixed if name in self.offloads)
        state["host"] = next((line for line in text.splitlines() if line in ("no ethtool", "no interface")), "")
        return state

    def wanted(self, before: State) -> State:
        return self._asked()

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        if before["host"] and self.unsupported == "fail":
            message, hint = _ABSENT[before["host"]]
            raise PlanError(message, hint=hint)
        unable = self._unable(before)
        if unable and self.unsupported == "fail":
            name, reason = next(iter(unable.items()))
            raise PlanError(
                f"{self.interface}: {name} = {self._asked()[name]} cannot be set, {reason}",
                hint="Compare with ethtool -k and ethtool -g there, or set unsupported: skip on the step.",
            )
        return self._set({n: v for n, v in self._asked().items() if n not in unable and before[n] != v})

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        fixed = (before["fixed"] or "").split()
        old = {
            name: value
            for name, value in before.items()
            if value is not None and (name in ("ring rx", "ring tx") or name.startswith("offload "))
        }
        return self._set({name: value for name, value in old.items() if name.removeprefix("offload ") not in fixed})

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        """An interface that is gone leaves nothing behind."""
        if now["host"] == "no interface":
            return ()
        settings = ("offload ", "ring rx", "ring tx")
        return tuple(
            key
            for key in super().differing(before, now)
            if key.startswith(settings) and not key.endswith(" max") and before[key] is not None
        )

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        unable = self._unable(before)
        return tuple(
            SettingOutcome(o.setting, o.wanted, o.before, o.effective, "unsupported", unable[o.setting])
            if o.setting in unable
            else o
            for o in super().outcomes(before, after)
        )

    def _asked(self) -> dict[str, str]:
        return {
            **{f"offload {name}": "on" if on else "off" for name, on in self.offloads.items()},
            **self._rings(),
        }

    def _rings(self) -> dict[str, str]:
        given = {"ring rx": self.rx_ring, "ring tx": self.tx_ring}
        return {name: str(value) for name, value in given.items() if value is not None}

    def _unable(self, before: State) -> dict[str, str]:
        unable = {}
        for name, value in self._asked().items():
            most = before.get(f"{name} max")
            if before[name] is None:
                unable[name] = "this interface does not have it"
            elif name.removeprefix("offload ") in (before["fixed"] or "").split() and before[name] != value:
                unable[name] = FIXED
            elif most is not None and int(value) > int(most):
                unable[name] = f"it is at most {most}"
        return unable

    def _set(self, values: dict[str, str]) -> tuple[Command, ...]:
        offloads, rings = [], []
        for name, value in values.items():
            if name.startswith("offload "):
                # What was asked of the driver and did not come about counts: it is asked again.
                asked = value.partition("[requested ")[2].removesuffix("]") or value
                offloads += [name.removeprefix("offload "), asked]
            else:
                rings += [name.removeprefix("ring "), value]
        return tuple(
            script(_SET, self.interface, option, *words, privileged=True)
            for option, words in (("-K", offloads), ("-G", rings))
            if words
        )


_ABSENT = {
    "no ethtool": ("this host has no ethtool", "Install it there as root: apt-get install ethtool."),
    "no interface": ("this host has no such network interface", "Correct the recipe: ip link shows the names."),
}


def _rings(text: str) -> dict[str, str]:
    """The present lengths and the greatest ones, from what `ethtool -g` prints."""
    limits, _, now = text.partition("Current hardware settings:")
    _, _, most = limits.partition("Pre-set maximums:")
    found = {f"ring {name.lower()} max": value for name, value in _RING.findall(most) if value != "n/a"}
    return found | {f"ring {name.lower()}": value for name, value in _RING.findall(now) if value != "n/a"}
