"""The plan of a run, as commands, before anything is touched. Pure: what the form shows and what a dry run fills in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.base.errors import AgentError
from agents.base.process_start import ProcessStart
from agents.drivers.base.driver import Target
from agents.drivers.shares import share_words
from agents.events import PhaseName
from agents.recordings.tools import RECORDERS
from agents.remote.journal import undo_text
from agents.running.preparation import launch_of
from agents.running.tuning import instance_directory
from agents.spec import Phase, RunSpec
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
    """The plan of `spec`. `found` maps the place of a step (from 1) to the state that a dry run read on the SUT."""
    sut, drivers = spec.sut.name, [driver.name for driver in spec.drivers]
    server, workload = spec.application.server, spec.workload
    context = StepContext(instance=instance_directory(RUN_DIRECTORY, 0))
    launch = launch_of(spec)
    phases = (
        PlanPhase(
            "facts",
            "Look at the hosts",
            (
                PlanItem(sut, f"Facts, and the version of {server.kind}"),
                *(PlanItem(driver, f"Facts, and the version of {workload.driver.kind}") for driver in drivers),
            ),
        ),
        PlanPhase("snapshot", "Remember the SUT", (PlanItem(sut, "All settings", ("grep -rs '' /proc/sys ...",)),)),
        PlanPhase("tune", "Tune", (_instance(spec), *_steps(spec, context, found or {}))),
        PlanPhase("start", "Start the server", (*_starts(spec, launch), *_ready(spec))),
        *(
            PlanPhase(
                "measure" if phase.kind == "measure" else "warm_up",
                f"{phase.name}, {phase.duration_s} s",
                (
                    *(_recordings(spec) if number == 0 else ()),
                    *(_settling(spec) if phase.kind == "measure" else ()),
                    *(
                        PlanItem(
                            driver,
                            f"Load on {_loaded(spec)}",
                            tuple(_pinned(workload.cpus, _tool(spec, url, phase)) for url in spec.urls),
                            note=_load_note(spec),
                        )
                        for driver in drivers
                    ),
                ),
            )
            for number, phase in enumerate(workload.phases)
        ),
        PlanPhase(
            "restore",
            "Put everything back",
            (PlanItem(sut, "Stop the server, undo every step in reverse order", changes=True),),
        ),
        PlanPhase("verify", "Prove it", (PlanItem(sut, "Read all settings again: they must equal the first reading"),)),
    )
    return Plan(phases, workload.load_s, workload.load_s + CONTROL_S)


def _instance(spec: RunSpec) -> PlanItem:
    server = spec.application.server
    directories = [instance_directory(RUN_DIRECTORY, number) for number in range(server.count)]
    return PlanItem(
        spec.sut.name,
        f"Private {server.kind} instance; the installation is not edited",
        tuple(f"mkdir {directory}" for directory in directories),
        (f"rm -rf -- {' '.join(directories)}",),
        changes=True,
    )


def _steps(spec: RunSpec, context: StepContext, found: Mapping[int, State]) -> list[PlanItem]:
    items = []
    for index, step in enumerate(spec.recipe.steps, start=1):
        if not is_host_step(step):
            items.append(PlanItem(spec.sut.name, step.title(), note="Holds for the server's process alone."))
            continue
        before = found.get(index)
        if before is None:
            note = "The exact commands depend on what the host shows; a dry run reads it."
            items.append(PlanItem(spec.sut.name, step.title(), changes=True, note=note))
            continue
        try:
            commands = undo_text(step.apply(context, before))
        except AgentError as error:
            items.append(PlanItem(spec.sut.name, step.title(), note=f"Will fail: {error.message}"))
            continue
        undo = undo_text(step.revert(context, before))
        note = "" if commands else "Already so on this host: nothing will be changed."
        items.append(PlanItem(spec.sut.name, step.title(), commands, undo, changes=bool(commands), note=note))
    return items


def _starts(spec: RunSpec, launch: ProcessStart) -> list[PlanItem]:
    items = []
    for number in range(spec.application.server.count):
        server = spec.application.server.instance(number)
        cpus = launch.cpus or server.cpus
        details = [f"CPUs {cpus}"] if cpus else []
        details += [f"{name} {value}" for name, value in launch.limits.items()]
        details += list(launch.jvm_options)
        details += launch.environment  # the names alone: a value may be a secret
        title = f"Start {server.kind} on port {server.port}"
        items.append(PlanItem(spec.sut.name, title, note=", ".join(details), changes=True))
    return items


def _ready(spec: RunSpec) -> list[PlanItem]:
    ready = spec.application.server.ready
    note = f"at most {ready.timeout_s:g} s"
    items = []
    for number, url in enumerate(spec.ready_urls):
        asked = spec.application.server.instance(number).ready_command("INSTANCE")
        if asked is not None:
            items.append(
                PlanItem(spec.sut.name, "Run until it says that the server is ready", (asked.shell(),), note=note)
            )
        what = {"http": f"{url} answers {ready.status}", "tcp": f"the port of {url} takes a connection", "none": ""}
        items += [
            PlanItem(one.name, f"Wait until {what[ready.probe]}", note=note)
            for one in spec.drivers
            if what[ready.probe]
        ]
    return items


def _settling(spec: RunSpec) -> list[PlanItem]:
    """What each instance does between warm-up and measurement."""
    server = spec.application.server
    directories = {n: instance_directory(RUN_DIRECTORY, n) for n in range(server.count)}
    asked = [server.instance(n).settling_command(directory) for n, directory in directories.items()]
    commands = tuple(command.shell() for command in asked if command is not None)
    title = f"Let {server.title} finish what the warm-up left"
    return [PlanItem(spec.sut.name, title, commands)] if commands else []


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
