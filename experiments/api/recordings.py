"""Files of other monitors, beside a run's own samples."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import AwareDatetime, BaseModel, Field

from agents.events import Role
from experiments.api.finding import find_run
from experiments.api.plumbing.auth import LAUNCH, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.shapes import Body
from experiments.asking.intake.recordings import MAX_RECORDING_CHARS, import_recording

router = Router(auth=LAUNCH, tags=["imports"])


class RecordingIn(Body):
    role: Role = Field(description="`sut`, `driver`, or `driver-2` and so on for further driver hosts")
    kind: str = Field(min_length=1, max_length=20, description="`nmon`, `mpstat` or `top`")
    text: str = Field(max_length=MAX_RECORDING_CHARS, description="What the tool wrote, byte for byte")
    started_at: AwareDatetime | None = Field(
        None, description="When its first sample was taken; without it the file's own clock counts, read as UTC"
    )

    model_config = {"str_strip_whitespace": False}


class RecordingOut(BaseModel):
    channels: list[str] = Field(description="As `samples` of the run gives them")
    first_s: float = Field(description="The first sample, counted from where measuring began")
    last_s: float
    notes: list[str]


@router.post("/{int:number}/recordings", response={201: RecordingOut})
@idempotent
def create_recording(request: HttpRequest, number: int, payload: RecordingIn) -> Status[RecordingOut]:
    """Store an nmon, mpstat or top recording of one of the run's hosts as channels, on the run's clock."""
    member = member_of(request)
    stored = import_recording(member, find_run(member, number), **payload.model_dump())
    return Status(
        201,
        RecordingOut(
            channels=list(stored.channels), first_s=stored.first_s, last_s=stored.last_s, notes=list(stored.notes)
        ),
    )
