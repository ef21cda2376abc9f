"""Checks of a machine, made of every member of a system of several hosts: the worst counts, with its role named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from experiments.analysis.findings import Finding, HostFigures, Level, LoadFigures, Thresholds
from experiments.analysis.host_checks import HostCheck
from experiments.analysis.machine_checks import OF_EACH_MACHINE

_RANK: Mapping[Level, int] = {"skipped": 0, "ok": 1, "warn": 2, "invalid": 3}


def of_all_machines(check: HostCheck, hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """What the check finds; of a system the worst of its members' findings, its sentences with their roles.

    What is not shown by one member counts neither for nor against the run where another shows it. The evidence of a
    further member begins with its role.
    """
    own = check(hosts, load, limits)
    if own is None or not hosts.members or check not in OF_EACH_MACHINE:
        return own
    found = {hosts.role: own}
    found |= {role: one for role, member in hosts.members.items() if (one := check(member, load, limits))}
    worst = max((one.level for one in found.values()), key=lambda level: _RANK[level])
    said: dict[str, list[str]] = {}
    for role, one in found.items():
        if one.level == worst:
            said.setdefault(one.sentence, []).append(role)
    evidence = dict(own.evidence)
    for role in (role for role in hosts.members if role in found):
        evidence |= {f"{role}_{name.removeprefix('sut_')}": value for name, value in found[role].evidence.items()}
    sentence = " ".join(f"{_listed(roles)}: {text}" for text, roles in said.items())
    return replace(own, level=worst, sentence=sentence, evidence=evidence)


def _listed(roles: list[str]) -> str:
    return " and ".join([", ".join(roles[:-1]), roles[-1]] if len(roles) > 1 else roles)
