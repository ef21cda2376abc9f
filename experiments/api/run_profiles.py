"""Profiles of runs: sent, listed, and given out in the forms that other viewers read."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from agents.profiles import PROFILE_FORMATS
from agents.profiles.base.taken import TakenProfile
from experiments.api.finding import find_run
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body
from experiments.asking.intake.run_profiles import MAX_SENT_BYTES, MAX_SENT_CHARS, import_profile
from experiments.models import RunProfile
from experiments.registry.errors import RequestError
from experiments.registry.runs.run_profiles import MAX_NAME, folded, profile_named

router = Router(auth=READ, tags=["runs"])

Written = Literal["collapsed", "pprof", "speedscope"]
_MAX_S = 10.0 * 86400


class RunProfileIn(Body):
    profiler: str = Field(min_length=1, max_length=40, description="Who took it: async-profiler, perf, py-spy, node")
    content: str = Field(
        max_length=MAX_SENT_CHARS,
        description=f"The file in base64, compressed with gzip or not; at most {MAX_SENT_BYTES:,} bytes",
    )
    form: str = Field(
        "", max_length=20, description=f"{', '.join(sorted(PROFILE_FORMATS))}; by its content when left out"
    )
    name: str = Field("", max_length=MAX_NAME, description="By which the run knows it; else made of the above")
    role: str = Field("", max_length=12, description="A member of the system; the loaded server when left out")
    event: str | None = Field(None, max_length=60, description="What was sampled: cpu, wall; else as the file says")
    engine: str | None = Field(None, max_length=60, description="What sampled it: perf, ctimer; else as the file says")
    start_s: float | None = Field(None, ge=-3600, le=_MAX_S, description="Its window, from where measuring began")
    end_s: float | None = Field(None, ge=-3600, le=_MAX_S)
    cpu_time_s: float | None = Field(
        None, gt=0, le=1e12, description="CPU time of the server in the window; else by the run's own samples"
    )
    requests: int | None = Field(None, ge=1, le=2**62, description="Answered in the window; else by the run's figures")
    samples: int | None = Field(None, ge=0, le=2**62)
    lost_samples: int | None = Field(None, ge=0, le=2**62)

    def taken(self) -> TakenProfile:
        if (self.start_s is None) != (self.end_s is None):
            field = "end_s" if self.end_s is None else "start_s"
            raise RequestError("A window has a start and an end.", field=field)
        window = None if self.start_s is None or self.end_s is None else (self.start_s, self.end_s)
        given = self.model_dump(exclude={"content", "start_s", "end_s"})
        return TakenProfile(window_s=window, **given)


class RunProfileOut(BaseModel):
    name: str
    role: str = Field(description="A member of the system; empty for the loaded server")
    profiler: str
    event: str = Field(description="Empty where nobody said it")
    engine: str
    unit: str = Field(description="What its weights count")
    form: str = Field(description="Of the file that was taken or sent")
    file: str = Field(description="The artifact of the run that holds it")
    start_s: float | None = Field(description="From where measuring began")
    end_s: float | None
    cpu_time_s: float | None = Field(description="Of the window; null where it is not known")
    requests: int | None
    cost_us: float | None = Field(description="CPU microseconds per request of the server")
    samples: int | None
    lost_samples: int | None
    unknown_ratio: float = Field(description="The part whose function nobody knows")
    stacks: int = Field(description="Distinct ones")
    created_at: datetime

    @classmethod
    def of(cls, stored: RunProfile) -> RunProfileOut:
        return cls(**{name: getattr(stored, name) for name in cls.model_fields})


@router.get("/{int:number}/profiles", response=list[RunProfileOut])
@paged
def list_run_profiles(request: HttpRequest, number: int) -> list[RunProfileOut]:
    """The profiles of a run, by name."""
    run = find_run(member_of(request), number)
    return [RunProfileOut.of(one) for one in run.profiles.defer("folded").order_by("name")]


@router.post("/{int:number}/profiles", response={201: RunProfileOut}, auth=LAUNCH)
@idempotent
def add_run_profile(request: HttpRequest, number: int, payload: RunProfileIn) -> Status[RunProfileOut]:
    """Add a profile that was taken while this run measured; 409 when it has one of this name."""
    member = member_of(request)
    stored = import_profile(member, find_run(member, number), content=payload.content, taken=payload.taken())
    return Status(201, RunProfileOut.of(stored))


@router.get(
    "/{int:number}/profiles/{name}",
    openapi_extra={
        "responses": {
            200: {
                "description": "OK",
                "headers": {"Content-Disposition": {}},
                "content": {"application/octet-stream": {"schema": {"type": "string"}}},
            }
        }
    },
)
def get_run_profile(
    request: HttpRequest, number: int, name: str, wanted: Written = Query("collapsed", alias="format")
) -> HttpResponse:
    """The profile in a form of other viewers; its own file is an artifact of the run."""
    run = find_run(member_of(request), number)
    stored = profile_named(run, name)
    form = PROFILE_FORMATS[wanted]
    content = form.write(folded(stored)) if form.write else b""
    response = HttpResponse(content, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="run-{run.number}-{stored.name}{form.suffix}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
