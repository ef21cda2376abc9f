"""Installs packages that a run needs, and removes again exactly what came with them."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext
from agents.steps.packages.dry_run import PackagePlan, apt_plan, dnf_plan

# The package manager itself says beforehand what it would install; nothing is changed and no list is fetched.
_PROBE = r"""
export LC_ALL=C
missing=
if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  echo manager apt
  for asked; do
    name=${asked%%=*}
    found=$(dpkg-query -W -f '${db:Status-Status} ${Version}' -- "$name" 2>/dev/null)
    case $found in
      'installed '*) echo "installed $name ${found#installed }";;
      *) missing="$missing $asked";;
    esac
  done
  [ -n "$missing" ] || exit 0
  apt-get -s -q -o Debug::NoLocking=1 --no-install-recommends install $missing </dev/null 2>&1 |
    grep -E '^(Inst|Remv|E:) '
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^config-files /residual /p'
elif command -v rpm >/dev/null && command -v dnf >/dev/null; then
  echo manager dnf
  for asked; do
    if found=$(rpm -q --qf '%{VERSION}-%{RELEASE}\n' -- "${asked%%=*}" 2>/dev/null); then
      echo "installed ${asked%%=*} $(printf '%s\n' "$found" | tail -n 1)"
    else missing="$missing $(printf %s "$asked" | tr = -)"; fi
  done
  [ -n "$missing" ] || exit 0
  dnf -C --assumeno --setopt=install_weak_deps=False install $missing </dev/null 2>&1
fi
:
"""

_APT_INSTALL = """
export LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
exec apt-get -y -q -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \\
  --no-install-recommends --no-remove --no-upgrade install "$@" </dev/null
"""

# dpkg and rpm remove what is named and nothing else: they refuse when something that came later needs it.
_APT_REMOVE = r"""
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
purge= remove= tries=24
for word; do
  case $word in remove:*) remove="$remove ${word#*:}";; *) purge="$purge ${word#*:}";; esac
done
take() {
  [ $# -gt 1 ] || return 0
  while ! said=$(dpkg --force-remove-reinstreq "$@" </dev/null 2>&1); do
    tries=$((tries - 1))
    case $said in *lock*) [ "$tries" -gt 0 ] && sleep 5 && continue;; esac
    printf '%s\n' "$said" >&2
    return 1
  done
}
take --remove $remove && take --purge $purge
"""

_DNF_INSTALL = """
export LC_ALL=C
exec dnf -y --setopt=install_weak_deps=False install "$@" </dev/null
"""

_RPM_REMOVE = """
export LC_ALL=C
left=
for package; do if rpm -q -- "$package" >/dev/null 2>&1; then left="$left $package"; fi; done
[ -z "$left" ] || exec rpm -e $left
"""

_BOOT = re.compile(
    r"linux-image.*|linux-modules.*|kernel(-core|-modules.*|-uek.*|-rt.*)?|grub.*|shim.*|systemd-boot.*|dracut.*"
)


def _asked(text: str) -> str:
    if _BOOT.fullmatch(text.partition("=")[0]):
        raise ValueError(f"{text} changes how the host starts, so no step installs it")
    return text


PackageName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9+._\-]{0,99}(=[A-Za-z0-9][A-Za-z0-9.+:~^_\-]{0,99})?$"),
    AfterValidator(_asked),
]


class PackagesStep(HostStep):
    """Has `packages` installed (NAME or NAME=VERSION), with what they need and nothing recommended (apt, dnf).

    What is there already stays untouched; a package that would upgrade or remove another one is refused. The lists of
    available packages are those that the host has.
    """

    once: ClassVar[bool] = True
    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("nothing", whole="it installs programs on the host")

    kind: Literal["packages"] = "packages"
    packages: tuple[PackageName, ...] = Field(min_length=1, max_length=50)

    def title(self) -> str:
        more = f" and {len(self.packages) - 5} more" if len(self.packages) > 5 else ""
        return f"Packages {', '.join(self.packages[:5])}{more}"

    def explains(self, path: str) -> bool:
        return path.startswith(("packages.", "java."))

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, *self.packages, privileged=True, timeout_s=120)

    def parse(self, output: bytes) -> State:
        """Name -> installed version for each asked package, and what installing the missing ones would do:

        `new` (NAME=VERSION, in order), `changed` (packages that would be upgraded or removed), `problem`, `residual`
        (of the new ones: those of which the host keeps the configuration), `manager`. Raises ParseError.
        """
        text = output.decode("utf-8", "replace")
        first, _, rest = text.partition("\n")
        if not first:
            return {**dict.fromkeys(self._names()), "manager": None, **_state(PackagePlan(), ())}
        if first not in ("manager apt", "manager dnf"):
            raise ParseError("the host said nothing about its packages", line=1)
        manager = first.removeprefix("manager ")
        lines = rest.splitlines()
        installed = {
            words[1]: words[2] for line in lines if (words := line.split())[:1] == ["installed"] and len(words) == 3
        }
        residual = {line.split()[1] for line in lines if line.startswith("residual ")}
        plan = apt_plan(lines) if manager == "apt" else dnf_plan(rest)
        names: State = {name: installed.get(name) for name in self._names()}
        return {**names, "manager": manager, **_state(plan, residual)}

    def wanted(self, before: State) -> State:
        wanted: dict[str, str | None] = {}
        for asked in self.packages:
            name, _, version = asked.partition("=")
            wanted[name] = version or before[name] or _version_of(name, before) or "installed"
        return wanted

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        if unable := self._unable(before):
            if self.unsupported == "skip" and all(before[name] is None for name in unable):
                return ()
            raise PlanError(
                f"{', '.join(unable)} cannot be installed: {next(iter(unable.values()))}",
                hint="Correct the name or the version; 'apt-get update' (dnf makecache) on the host renews its lists.",
            )
        new = (before["new"] or "").split()
        if not new:
            return ()
        if changed := (before["changed"] or "").split():
            raise PlanError(
                f"installing {', '.join(self._missing(before))} would change {', '.join(changed[:5])}, "
                "which could not be put back",
                hint="Bring the host up to date first, or name a version that fits it.",
            )
        if before["manager"] == "apt":
            return (script(_APT_INSTALL, *new, privileged=True, timeout_s=1200),)
        return (script(_DNF_INSTALL, *(package.replace("=", "-") for package in new), privileged=True, timeout_s=1200),)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        new = (before["new"] or "").split()
        if not new:
            return ()
        if before["manager"] != "apt":
            names = [package.replace("=", "-") for package in new]
            return (script(_RPM_REMOVE, *names, privileged=True, timeout_s=600),)
        residual = (before["residual"] or "").split()
        names = [package.partition("=")[0] for package in new]
        words = [f"{'remove' if name in residual else 'purge'}:{name}" for name in names]
        return (script(_APT_REMOVE, *words, privileged=True, timeout_s=600),)

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        names = self._names()
        return tuple(key for key in super().differing(before, now) if key in names)

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        """One line per asked package; the detail names what came with it."""
        unable, asked = self._unable(before), self._names()
        others = [p for p in (before["new"] or "").split() if p.partition("=")[0] not in asked]
        outcomes = []
        for name, wanted in self.wanted(before).items():
            was, now = before[name], after[name]
            result: Result = "refused"
            detail = unable.get(name, "")
            if now is not None and now == wanted:
                result = "unchanged" if was == now else "applied"
                detail = f"together with {', '.join(others)}" if others and was is None else ""
            elif now is None and detail:
                result = "unsupported"
            outcomes.append(SettingOutcome(name, wanted, was, now, result, detail))
        return tuple(outcomes)

    def _names(self) -> list[str]:
        return [asked.partition("=")[0] for asked in self.packages]

    def _missing(self, before: State) -> list[str]:
        return [name for name in self._names() if before[name] is None]

    def _unable(self, before: State) -> dict[str, str]:
        unable = {}
        for asked in self.packages:
            name, _, version = asked.partition("=")
            if before[name] is None:
                if before["manager"] is None:
                    unable[name] = "this host has neither apt nor dnf"
                elif before["problem"]:
                    unable[name] = before["problem"]
                elif _version_of(name, before) is None:
                    unable[name] = "it is no package of its own here"
            elif version and before[name] != version:
                unable[name] = f"version {before[name]} is installed, and changing it could not be put back exactly"
        return unable


def _state(plan: PackagePlan, residual: set[str] | tuple[()]) -> dict[str, str | None]:
    names = {package.partition("=")[0] for package in plan.new}
    return {
        "new": " ".join(plan.new),
        "changed": " ".join(plan.changed),
        "problem": plan.problem,
        "residual": " ".join(sorted(names & set(residual))),
    }


def _version_of(name: str, before: State) -> str | None:
    packages = dict(package.partition("=")[::2] for package in (before["new"] or "").split())
    return packages.get(name)
