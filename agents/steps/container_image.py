"""An image of a container, by its digest, on the host before the server starts."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import StringConstraints

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

Engine = Literal["podman", "docker"]

# An engine counts when it answers: a docker without its daemon has no images.
_PROBE = """
image=$1
shift
for engine; do
  command -v "$engine" >/dev/null || continue
  if ! said=$("$engine" info 2>&1 >/dev/null); then
    echo "silent=$engine: $(printf '%s' "$said" | tail -n 1)"
    continue
  fi
  echo "engine=$engine"
  id=$("$engine" image inspect --format '{{.Id}}' -- "$image" 2>/dev/null) && echo "id=$id"
  break
done
:
"""

_FETCH = 'exec "$1" pull -q -- "$2"'

_REMOVE = """
"$1" image inspect -- "$2" >/dev/null 2>&1 || exit 0
"$1" image rm -- "$2"
"""


class ContainerImageStep(HostStep):
    """Has an image on the host, named by its digest (`docker.io/library/nginx@sha256:...`), so that what runs is what
    was asked. It is fetched by podman, or by docker where that is not there, and removed again unless it was there.
    """

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("nothing", whole="it fetches programs of others to the host")
    once: ClassVar[bool] = True

    kind: Literal["container_image"] = "container_image"
    image: Annotated[
        str,
        StringConstraints(pattern=r"^[a-z0-9]+(?:[._:/-][a-z0-9]+|__)*@sha256:[0-9a-f]{64}$", max_length=400),
    ]
    engine: Literal["any", "podman", "docker"] = "any"

    def title(self) -> str:
        name, _, digest = self.image.partition("@sha256:")
        return f"Container image {name} ({digest[:12]})"

    def explains(self, path: str) -> bool:
        return False

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, self.image, *self._engines(), privileged=True)

    def parse(self, output: bytes) -> State:
        """`image` is "there" or None, `engine` the one that answers, `silent` what another one said."""
        fields = dict(line.partition("=")[::2] for line in output.decode("utf-8", "replace").splitlines())
        return {
            "image": "there" if fields.get("id") else None,
            "engine": fields.get("engine"),
            "silent": fields.get("silent"),
        }

    def wanted(self, before: State) -> State:
        return {"image": "there"}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        engine = before["engine"]
        if engine is None:
            if self.unsupported == "skip":
                return ()
            silent = before["silent"]
            raise PlanError(
                f"no container engine answers on this host ({silent or ' and '.join(self._engines()) + ' not found'})",
                hint="Start its service." if silent else "Install it there as root: apt-get install podman.",
            )
        if before["image"] is not None:
            return ()
        return (script(_FETCH, engine, self.image, privileged=True, timeout_s=1800),)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        if before["image"] is not None or before["engine"] is None:
            return ()
        return (script(_REMOVE, before["engine"], self.image, privileged=True, timeout_s=300),)

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return ("image",) if before["image"] != now["image"] else ()

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        was, now = before["image"], after["image"]
        result: Result = "refused"
        if now is not None:
            result = "applied" if was is None else "unchanged"
        elif before["engine"] is None:
            result = "unsupported"
        return (SettingOutcome(self.image, "there", was, now, result),)

    def _engines(self) -> tuple[Engine, ...]:
        return ("podman", "docker") if self.engine == "any" else (self.engine,)
