"""Whole data as Parquet, for pandas, polars, DuckDB and R: every run with every figure, every point of a series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.http import HttpRequest
from ninja import Query as QueryOf
from ninja import Router
from ninja.params.functions import Query

from experiments.api.choices import Time
from experiments.api.finding import find_experiment, find_run
from experiments.api.plumbing.auth import READ, member_of
from experiments.api.runs import RunQuery
from experiments.models import Run
from experiments.registry.replica import read_from_replica
from experiments.telling.frames.runs import runs_file
from experiments.telling.frames.samples import samples_file
from experiments.telling.run_list.conditions import parse_time
from experiments.telling.run_list.csv_response import WholeFile
from experiments.telling.run_list.filters import matching

router = Router(auth=READ)

View = TypeVar("View", bound=Callable[..., Any])
PARQUET = "application/vnd.apache.parquet"
_EXTRA: dict[str, Any] = {
    "responses": {
        200: {
            "description": "OK",
            "headers": {"Content-Disposition": {}},
            "content": {PARQUET: {"schema": {"type": "string", "contentMediaType": PARQUET}}},
        }
    }
}
ABOUT = (
    " A row for each run, by number; a column for each figure in the unit of its name, each label (`label.KEY`) and "
    "each chosen parameter (`param.KEY`). A figure that a run does not have, or that saturation hides, is null."
)


def _frames(router_path: str, tag: str, summary: str, description: str) -> Callable[[View], View]:
    return router.get(router_path, tags=[tag], summary=summary, description=description, openapi_extra=_EXTRA)


@_frames("/runs.parquet", "runs", "Runs as Parquet", "All runs of the filters, not a page of them." + ABOUT)
def runs_parquet(request: HttpRequest, filters: QueryOf[RunQuery]) -> WholeFile:
    """All runs of the filters as a file, made whole before it is sent."""
    runs = matching(member_of(request).team, filters.as_filter())
    return WholeFile(read_from_replica(lambda: runs_file(runs)), content_type=PARQUET, filename="runs.parquet")


@_frames(
    "/runs/{int:number}/samples.parquet",
    "runs",
    "Samples as Parquet",
    "All points of what the monitors read: `role`, `channel`, `unit`, `at_s` (0 is where measuring began) and `value`.",
)
def samples_parquet(
    request: HttpRequest,
    number: int,
    channel: list[str] = Query([], max_length=50, description="Only these channels"),
) -> WholeFile:
    """Every sample of a run as a file, in seconds from where measuring began."""
    run = find_run(member_of(request), number)
    made = read_from_replica(lambda: samples_file(run, channel))
    return WholeFile(made, content_type=PARQUET, filename=f"run-{number}-samples.parquet")


@_frames("/experiments/{int:experiment_id}.parquet", "experiments", "An experiment's runs as Parquet", ABOUT.strip())
def experiment_parquet(
    request: HttpRequest,
    experiment_id: int,
    profiled: bool = Query(False, description="Also the profiled twins, which count nowhere; `profiled` marks them"),
) -> WholeFile:
    """The runs of an experiment as a file, those in the trash left out."""
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    kept = Run.objects.for_team(member.team).kept().filter(experiment=experiment)
    runs = kept if profiled else kept.plain()
    return WholeFile(
        read_from_replica(lambda: runs_file(runs)), content_type=PARQUET, filename=f"experiment-{experiment_id}.parquet"
    )


@_frames(
    "/series/{fingerprint}.parquet",
    "series",
    "A history as Parquet",
    "The runs of a series that count, those that `GET /series/{fingerprint}` makes its points of." + ABOUT,
)
def series_parquet(
    request: HttpRequest,
    fingerprint: str,
    recipe: str = Query("", max_length=120),
    since: Time = None,
    until: Time = None,
) -> WholeFile:
    """The runs of a history that count as a file; `since` and `until` are of their end."""
    runs = Run.objects.for_team(member_of(request).team).counted().filter(fingerprint=fingerprint)
    if recipe:
        runs = runs.filter(recipe__name=recipe)
    if since:
        runs = runs.filter(finished_at__gte=parse_time(since, "since"))
    if until:
        runs = runs.filter(finished_at__lt=parse_time(until, "until"))
    return WholeFile(read_from_replica(lambda: runs_file(runs)), content_type=PARQUET, filename="series.parquet")
