"""Starts or stops a system service for a run: whether it runs, not whether it starts with the host."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, StringConstraints

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

# Without systemd the exit status of the init script counts: 0 runs, 1 to 3 does not, anything else says nothing.
_PROBE = """
if [ -d /run/systemd/system ]; then
  echo manager=systemd
  systemctl show -p Id -p LoadState -p ActiveState -- "$1"
  for unit in $(systemctl show --value -p RequiredBy -p BoundBy -p ConsistsOf -- "$1"); do
    case $unit in *.target) ;; *) systemctl is-active -q -- "$unit" && echo "Dependent=$unit";; esac
  done
else
  name=${1%.service}
  echo manager=init
  if [ -x "/etc/init.d/$name" ] && command -v service >/dev/null; then
    service "$name" status >/dev/null 2>&1 </dev/null
    echo "status=$?"
  fi
fi
:
"""

_SWITCH = """
if [ -d /run/systemd/system ]; then exec systemctl --no-ask-password "$2" -- "$1"; fi
service "${1%.service}" "$2" </dev/null
"""

KEPT: dict[str, str] = {
    "sshd? dropbear": "BenchHub itself comes in through it",
    "systemd-.* dbus.* init elogind seatd polkit.* user@.* (serial-)?getty.*": "the system rests on it",
    "network.* NetworkManager.* wicked.* wpa_supplicant.* ifup.* dhclient.* dhcpcd.* cloud-.* wg-quick.* openvpn.* "
    "strongswan.* ipsec tailscaled zerotier.* bird frr keepalived": "the host may be reached through it",
    "(ip6?|nf)tables firewalld ufw fail2ban netfilter-persistent shorewall.*": "it decides who reaches the host",
    "sssd.* nslcd winbind nscd oddjobd realmd krb5.* ypbind": "logins may need it",
    "lvm2.* dm-event mdadm.* mdmonitor multipathd iscsi.* open-iscsi nfs.* rpcbind rpc-.* autofs zfs.* ceph.* "
    "cryptsetup.* e?udev.*": "file systems may need it",
}
"""Names (patterns) of services that no step starts or stops -> the reason."""


def _name(name: str) -> str:
    unit = name.removesuffix(".service")
    if unit.rpartition(".")[2] in ("target", "mount", "automount", "swap", "slice", "scope", "path", "device"):
        raise ValueError(f"'{name}' is no service, socket or timer")
    if reason := kept(unit):
        raise ValueError(f"a step may not start or stop {unit}: {reason}")
    return unit


def kept(unit: str) -> str | None:
    """Why no step may start or stop this unit; None when it may."""
    base = re.sub(r"\.(service|socket|timer)$", "", unit)
    for patterns, reason in KEPT.items():
        if re.fullmatch(rf"(?:{patterns.replace(' ', '|')})(?:@.*)?", base):
            return reason
    return None


ServiceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@:\-]{0,99}$"), AfterValidator(_name)]

_STATES = {"active": "yes", "reloading": "yes", "refreshing": "yes", "inactive": "no", "failed": "no"}


class ServiceStep(HostStep):
    """Has the service `name` running, or not. What depends on it is left alone: stop that first, with its own step."""

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("nothing", whole="it starts and stops services of the host")

    kind: Literal["service"] = "service"
    name: ServiceName
    running: bool

    def title(self) -> str:
        return f"Service {self.name} {'running' if self.running else 'stopped'}"

    def explains(self, path: str) -> bool:
        return False

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, self._unit, privileged=True)

    def parse(self, output: bytes) -> State:
        """`running`: yes, no, the name of another state, or None where there is no such service.

        `dependents` are what runs and would stop with it. Raises PlanError when the name is another one for a service
        that must be left alone, ParseError when the host names no state.
        """
        lines = [line.partition("=")[::2] for line in output.decode("utf-8", "replace").splitlines()]
        fields = dict(lines)
        dependents = " ".join(dict.fromkeys(value for key, value in lines if key == "Dependent"))
        if fields.get("manager") == "systemd":
            unit = fields.get("Id", self._unit)
            if reason := kept(unit):
                raise PlanError(
                    f"{self.name} is another name for {unit}, which a step may not start or stop: {reason}",
                    hint="Take the step out of the recipe.",
                )
            absent = fields.get("LoadState") in ("not-found", "masked", "error", "bad-setting", None)
            active = fields.get("ActiveState", "")
            return {"running": None if absent else _STATES.get(active, active), "dependents": dependents}
        if fields.get("manager") != "init":
            raise ParseError(f"the host said nothing about the service {self.name}")
        status = fields.get("status")
        if status is not None and status not in ("0", "1", "2", "3"):
            status = None
        running = None if status is None else "yes" if status == "0" else "no"
        return {"running": running, "dependents": dependents}

    def wanted(self, before: State) -> State:
        return {"running": "yes" if self.running else "no"}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        running, dependents = before["running"], before["dependents"]
        if running is None:
            if self.unsupported == "skip":
                return ()
            raise PlanError(
                f"there is no service {self.name} on this host", hint="Correct the name, or set unsupported: skip."
            )
        if running not in ("yes", "no"):
            raise PlanError(
                f"the service {self.name} is {running}, neither running nor stopped",
                hint="Wait until it is one of them.",
            )
        if running == self.wanted(before)["running"]:
            return ()
        if dependents and not self.running:
            raise PlanError(
                f"stopping {self.name} would stop {', '.join(dependents.split())} as well",
                hint="Stop these with service steps of their own before this one, so that they are put back, too.",
            )
        return (self._switch("start" if self.running else "stop"),)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        words = {"yes": "start", "no": "stop"}
        return tuple(self._switch(word) for word in [words.get(before["running"] or "")] if word)

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return ("running",) if before["running"] != now["running"] else ()

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        wanted, was, now = self.wanted(before)["running"], before["running"], after["running"]
        result: Result = "refused"
        if was is None:
            result = "unsupported"
        elif now == wanted:
            result = "unchanged" if was == wanted else "applied"
        return (SettingOutcome(f"{self.name} running", wanted, was, now, result),)

    @property
    def _unit(self) -> str:
        return self.name if self.name.endswith((".socket", ".timer")) else f"{self.name}.service"

    def _switch(self, word: str) -> Command:
        return script(_SWITCH, self._unit, word, privileged=True, timeout_s=180)
