"""The plan of a run, as commands, before anything is touched. Pure: what the form shows and what a dry run fills in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.base.errors import AgentError
from agents.drivers.base.driver import Target
from agents.drivers.shares import share_words
from agents.events import PhaseName
from agents.recordings.tools import RECORDERS
from agents.remote.journal import undo_text
from agents.running.preparation import launch_of
from agents.running.profiling import margin_of
from agents.running.tuning import MEMBER, instance_directory
from agents.spec import Part, Phase, RunSpec
from agents.steps import is_host_step
from agents.steps.base.step import State, StepContext

RUN_DIRECTORY = "$HOME/.benchhub/runs/RUN"
"""Stands for the run's directory on a host: its name is known only when the run exists."""


@dataclass(frozen=True)
class PlanItem:
    """One thing that will be done. `undo` is what takes it back; `changes` is False for what only reads."""

    host: str
    title: str
    commands: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    changes: bool = False
    note: str = ""


@dataclass(frozen=True)
class PlanPhase:
    name: PhaseName
    title: str
    items: tuple[PlanItem, ...]


@dataclass(frozen=True)
class Plan:
    """Phases in order. `load_s` is the load alone; `estimate_s` the whole run as far as it can be known before."""

    phases: tuple[PlanPhase, ...]
    load_s: int
    estimate_s: int


EACH_INSTANCE = "Each instance of the server has a load tool of its own with all options of the workload."
CONTROL_S = 10
"""Time of a run beside its load: facts, tuning, start of the server, restore (docs/performance.md)."""


def build_plan(spec: RunSpec, *, found: Mapping[int, State] | None = None) -> Plan:
    """The plan of `spec`. `found` maps the place of a step (`host_steps`) to the state that a dry run read there."""
    drivers, workload = [driver.name for driver in spec.drivers], spec.workload
    parts, hosts = spec.parts, list(dict.fromkeys(part.host.name for part in spec.parts))
    phases = (
        PlanPhase(
            "facts",
            "Look at the hosts",
            (
                *(PlanItem(part.host.name, f"Facts, and the version of {part.server.kind}") for part in parts),
                *(PlanItem(driver, f"Facts, and the version of {workload.driver.kind}") for driver in drivers),
            ),
        ),
        PlanPhase(
            "snapshot",
            "Remember the hosts" if spec.members else "Remember the SUT",
            tuple(PlanItem(host, "All settings", ("grep -rs '' /proc/sys ...",)) for host in hosts),
        ),
        PlanPhase(
            "tune", "Tune", tuple(item for part in parts for item in (_instance(part), *_steps(part, found or {})))
        ),
        PlanPhase(
            "start",
            "Start the servers" if spec.members else "Start the server",
            tuple(item for part in spec.parts_in_order for item in (*_starts(part), *_ready(spec, part))),
        ),
        *(
            PlanPhase(
                "measure" if phase.kind == "measure" else "warm_up",
                f"{phase.name}, {phase.duration_s} s",
                (
                    *(_recordings(spec) if number == 0 else ()),
                    *(item for part in spec.parts_in_order if phase.kind == "measure" for item in _settling(part)),
                    *(
                        PlanItem(
                            driver,
                            f"Load on {_loaded(spec)}",
                            tuple(_pinned(workload.cpus, _tool(spec, url, phase)) for url in spec.urls),
                            note=_load_note(spec),
                        )
                        for driver in drivers
                    ),
                    *(_profilers(spec, phase) if phase.kind == "measure" else ()),
                ),
            )
            for number, phase in enumerate(workload.phases)
        ),
        PlanPhase(
            "restore",
            "Put everything back",
            tuple(
                PlanItem(host, "Stop the server, undo every step in reverse order", changes=True)
                for host in reversed(hosts)
            ),
        ),
        PlanPhase(
            "verify",
            "Prove it",
            tuple(PlanItem(host, "Read all settings again: they must equal the first reading") for host in hosts),
        ),
    )
    return Plan(phases, workload.load_s, workload.load_s + CONTROL_S)


def _instance(part: Part) -> PlanItem:
    server = part.server
    directories = [instance_directory(RUN_DIRECTORY, number, part.role) for number in range(server.count)]
    return PlanItem(
        part.host.name,
        f"Private {server.kind} instance; the installation is not edited",
        tuple(f"mkdir {directory}" for directory in directories),
        (f"rm -rf -- {' '.join(directories)}",),
        changes=True,
    )


def _steps(part: Part, found: Mapping[int, State]) -> list[PlanItem]:
    items, host = [], part.host.name
    context = StepContext(instance=instance_directory(RUN_DIRECTORY, 0, part.role))
    for index, step in enumerate(part.steps, start=part.place * MEMBER + 1):
        if not is_host_step(step):
            items.append(PlanItem(host, step.title(), note="Holds for the server's process alone."))
            continue
        before = found.get(index)
        if before is None:
            note = "The exact commands depend on what the host shows; a dry run reads it."
            items.append(PlanItem(host, step.title(), changes=True, note=note))
            continue
        try:
            commands = undo_text(step.apply(context, before))
        except AgentError as error:
            items.append(PlanItem(host, step.title(), note=f"Will fail: {error.message}"))
            continue
        undo = undo_text(step.revert(context, before))
        note = "" if commands else "Already so on this host: nothing will be changed."
        items.append(PlanItem(host, step.title(), commands, undo, changes=bool(commands), note=note))
    return items


def _starts(part: Part) -> list[PlanItem]:
    items, launch = [], launch_of(part)
    for number in range(part.server.count):
        server = part.server.instance(number)
        cpus = launch.cpus or server.cpus
        details = [f"CPUs {cpus}"] if cpus else []
        details += [f"{name} {value}" for name, value in launch.limits.items()]
        details += list(launch.jvm_options)
        details += launch.environment  # the names alone: a value may be a secret
        title = f"Start {server.kind} on port {server.port}"
        items.append(PlanItem(part.host.name, title, note=", ".join(details), changes=True))
    return items


def _ready(spec: RunSpec, part: Part) -> list[PlanItem]:
    ready, hosts = part.server.ready, spec.hosts
    note = f"at most {ready.timeout_s:g} s"
    items = []
    for number, url in enumerate(part.ready_urls):
        asked = part.server.instance(number).ready_command("INSTANCE")
        if asked is not None:
            items.append(
                PlanItem(part.host.name, "Run until it says that the server is ready", (asked.shell(),), note=note)
            )
        what = {"http": f"{url} answers {ready.status}", "tcp": f"the port of {url} takes a connection", "none": ""}
        items += [
            PlanItem(hosts[role].name, f"Wait until {what[ready.probe]}", note=note)
            for role in part.asked_from
            if what[ready.probe]
        ]
    return items


def _settling(part: Part) -> list[PlanItem]:
    """What each instance does between warm-up and measurement."""
    server = part.server
    directories = {n: instance_directory(RUN_DIRECTORY, n, part.role) for n in range(server.count)}
    asked = [server.instance(n).settling_command(directory) for n, directory in directories.items()]
    commands = tuple(command.shell() for command in asked if command is not None)
    title = f"Let {server.title} finish what the warm-up left"
    return [PlanItem(part.host.name, title, commands)] if commands else []


def _recordings(spec: RunSpec) -> list[PlanItem]:
    """What records on every host from before the first load to the end of the last."""
    recorders = [RECORDERS[name] for name in spec.workload.recorders]
    return [
        PlanItem(
            host.name,
            f"Record with {recorder.name} until the load has ended",
            (recorder.command(spec.workload.load_s).shell(),),
            note=f"Its file is kept as {recorder.file_of(role)}; {recorder.cost}.",
        )
        for role, host in spec.hosts.items()
        for recorder in recorders
    ]


def _profilers(spec: RunSpec, phase: Phase) -> list[PlanItem]:
    """What profiles the servers in a window of the measured load."""
    margin_s = margin_of(phase.duration_s)
    window = f"from {margin_s:g} s after the load has begun to {margin_s:g} s before it ends"
    return [
        PlanItem(
            part.host.name,
            f"Profile {part.title} with {chosen.name}, {window}",
            note=f"It costs {chosen.profiler.cost}. What it needs lies in the run's own directory and goes with it.",
        )
        for part in spec.parts
        for chosen in part.profilers
    ]


def _loaded(spec: RunSpec) -> str:
    """What the tool loads, as the end of a sentence."""
    return "this host itself" if spec.workload.driver.reaches == "own host" else ", ".join(spec.urls)


def _load_note(spec: RunSpec) -> str:
    """What of the load this tool puts on, and that the tools begin together."""
    hosts, notes = len(spec.drivers), []
    if hosts > 1:
        notes.append(f"Its share: {share_words(spec.workload.driver, hosts)}. The tools of all hosts begin together.")
    if len(spec.urls) > 1:
        notes.append(EACH_INSTANCE)
    return " ".join(notes)


def _tool(spec: RunSpec, url: str, phase: Phase) -> str:
    return spec.tool_of(phase).command(Target(url), phase.duration_s).shell()


def _pinned(cpus: str, command: str) -> str:
    return f"taskset -c {cpus} {command}" if cpus else command
