"""Options of the Java virtual machine that runs the server."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.formats.java_options import option_is_harmless
from agents.formats.jvm import JvmOption
from agents.steps.base.step import LaunchStep


class JvmOptionsStep(LaunchStep):
    """Adds `options` behind those of earlier steps; the JVM lets the last of two contradicting ones win."""

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights(
        "sets options of the JVM that tune: memory, collector, threads, switches, properties of the application",
        gates={
            "options": Gate(
                "any other option: agents, classes, commands, ports, files",
                lambda step: all(map(option_is_harmless, step.options)),
            )
        },
    )

    kind: Literal["jvm_options"] = "jvm_options"
    options: tuple[JvmOption, ...] = Field(min_length=1, max_length=200)

    def title(self) -> str:
        return f"JVM options {' '.join(self.options)}"

    def parts(self) -> tuple[JvmOptionsStep, ...]:
        return tuple(JvmOptionsStep(options=(option,)) for option in self.options)

    def explains(self, path: str) -> bool:
        if path.startswith("jvm.flags."):  # a system property is the application's, no flag of the JVM follows it
            return not all(option.startswith("-D") for option in self.options)
        return path.startswith(("jvm.arguments", "process.arguments[")) or path.endswith("_JAVA_OPTIONS")

    def contribute(self, launch: ProcessStart) -> ProcessStart:
        return launch.with_(jvm_options=(*launch.jvm_options, *self.options))
