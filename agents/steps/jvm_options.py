"""Options of the Java virtual machine that runs the server."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field

from agents.base.process_start import Launch
from agents.formats.jvm import JvmOption
from agents.steps.base.step import LaunchStep

# Agents, commands that the JVM runs, where it finds classes and libraries, and files anywhere that it writes or reads.
_LOADS_CODE = re.compile(
    r"-agent|-javaagent|-Xrun|-Xbootclasspath|-XX:(?:OnError|OnOutOfMemoryError|Flags|VMOptionsFile)|-cp|--?class-?path"
    r"|-jar|-p\b|--module-path|--patch-module|--upgrade-module-path|-Djava\.(?:library|class|ext|endorsed)|-D.*rmi|@"
    r"|-Dcom\.sun\.management\.jmxremote|-XX:(?:SharedArchiveFile|AOTLibrary|AOTCache)|-X.*(?:[=:,\"]/|\.\./)",
)


class JvmOptionsStep(LaunchStep):
    """Adds `options` behind those of earlier steps; the JVM lets the last of two contradicting ones win."""

    sets_clock: ClassVar[bool] = False
    needs_admin: ClassVar[bool] = False

    kind: Literal["jvm_options"] = "jvm_options"
    options: tuple[JvmOption, ...] = Field(min_length=1, max_length=200)

    def title(self) -> str:
        return f"JVM options {' '.join(self.options)}"

    @property
    def needs_shell(self) -> bool:
        return any(_LOADS_CODE.match(option) for option in self.options)

    def parts(self) -> tuple[JvmOptionsStep, ...]:
        return tuple(JvmOptionsStep(options=(option,)) for option in self.options)

    def explains(self, path: str) -> bool:
        if path.startswith("jvm.flags."):  # a system property is the application's, no flag of the JVM follows it
            return not all(option.startswith("-D") for option in self.options)
        return path.startswith(("jvm.arguments", "process.arguments[")) or path.endswith("_JAVA_OPTIONS")

    def contribute(self, launch: Launch) -> Launch:
        return launch.with_(jvm_options=(*launch.jvm_options, *self.options))
