"""The one error tree of the agents. Every message says what happened and what a person can do."""

from __future__ import annotations

from typing import Literal

Cause = Literal["person", "specification", "host", "benchhub"]
"""Whose the end of a run is: only after `host` and `benchhub` may the same run succeed when it is tried again."""

MISTAKE_HINT = "The worker's log has the details; please report them."
"""The hint of an error that nobody foresaw: it is ours, and the person can do nothing else about it."""

UNKNOWN_HOLDER_HINT = (
    "Another worker of this BenchHub has used the host since, or the database is an older copy. When nobody else uses "
    "the host, restore it on its page: BenchHub then looks at what is there."
)
"""The hint after a host has refused a worker of whose successor its own database knows nothing."""


class AgentError(Exception):
    """Something that a person must be told; `hint` says what to do about it, `cause` whose it is."""

    cause: Cause = "specification"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConnectError(AgentError):
    """No connection to a host. `permanent` means that trying again cannot help (key refused, host key changed)."""

    cause: Cause = "host"

    def __init__(self, message: str, *, hint: str = "", permanent: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.permanent = permanent
        if permanent:  # the same run once more would be refused the same
            self.cause = "specification"


class HostKeyRefused(ConnectError):
    """A host did not prove to be the approved one, so nobody logged in. `host` is its name: a jump host has its own."""

    def __init__(self, message: str, *, host: str, hint: str = "") -> None:
        super().__init__(message, hint=hint, permanent=True)
        self.host = host


class CommandError(AgentError):
    """A command of BenchHub's own failed on a host, timed out, or ended without telling its exit status.

    A value that is wrong is a PlanError before that, so what is left is the host's: its disk, its rights, its programs.
    """

    cause: Cause = "host"


class ProgramError(CommandError):
    """What the specification names failed by its own word: a server, a load tool, shell text of a recipe's author."""

    cause = "specification"


class NoRoomError(CommandError):
    """The disk of the worker has no room for what came from a host."""

    cause = "benchhub"


class KeepError(AgentError):
    """BenchHub has no place for a file of the run: it is too large, or the place of files does not answer now."""

    cause: Cause = "benchhub"


class HostError(AgentError):
    """The host lost something in the middle of the run: it was restarted, or a process of the run was killed there."""

    cause = "host"


class OccupiedError(ConnectError):
    """Another installation of BenchHub works on the machine, or has left something there: nothing was changed."""


class MistakeError(AgentError):
    """BenchHub itself failed, in a way that nobody foresaw."""

    cause = "benchhub"


class FenceError(AgentError):
    """A newer holder of the host exists: whoever sees this must stop and touch nothing.

    `seen` is the greatest fence that the host has had of this installation, where it told.
    """

    def __init__(self, message: str, *, hint: str = "", seen: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.seen = seen


class HostInUse(AgentError):
    """Somebody else uses the machine at this moment. Raised before anything is changed, so that the run may wait."""

    cause = "host"


class PlanError(AgentError):
    """The run cannot start as it is specified (unknown tool, overlapping CPU sets, unsupported key).

    `parameter` is the one of the recipe that it is about, where it is about one.
    """

    def __init__(self, message: str, *, hint: str = "", parameter: str = "") -> None:
        super().__init__(message, hint=hint)
        self.parameter = parameter


class NotReady(AgentError):
    """The server did not become ready in time."""


class ParseError(AgentError):
    """The text is not what the tool prints; `line` is the first line (from 1) that could not be read."""

    def __init__(self, message: str, *, hint: str = "", line: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.line = line
