"""Everything of the team by its name: what the search box of the pages finds."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.api.plumbing.auth import READ, member_of
from experiments.api.shapes import Named, RunRow, experiment_url
from experiments.telling.find.everything import MAX_FOUND, MAX_TEXT, look_up

router = Router(auth=READ, tags=["search"])


class FoundExperiment(BaseModel):
    id: int
    url: str
    name: str
    question: str


class FoundSeries(BaseModel):
    fingerprint: str
    application: str
    workload: str
    tool: str


class FoundOut(BaseModel):
    """What fits, best first in each kind, and of each kind the first few; its own list has the rest."""

    runs: list[RunRow] = Field(description="By number, labels, tags and names of what they are made of")
    more_runs: bool
    experiments: list[FoundExperiment]
    hosts: list[str]
    applications: list[Named]
    recipes: list[Named]
    workloads: list[Named]
    series: list[FoundSeries]


@router.get("", response=FoundOut, summary="Search", description=f"Up to {MAX_FOUND} of each kind by their names.")
def search(
    request: HttpRequest, q: str = Query("", max_length=MAX_TEXT, description="Words that all have to be there")
) -> FoundOut:
    """Up to eight of each kind whose name has every word; a run is found by its number as well."""
    team = member_of(request).team
    found = look_up(team, q)
    documents = {
        kind: [Named(name=one.name, version=one.version) for one in found.documents.get(kind, ())]
        for kind in ("applications", "recipes", "workloads")
    }
    return FoundOut(
        runs=[RunRow.of(run, team.slug) for run in found.runs],
        more_runs=found.more_runs,
        experiments=[
            FoundExperiment(id=one.pk, url=experiment_url(team.slug, one.pk), name=one.name, question=one.question)
            for one in found.experiments
        ],
        hosts=[host.name for host in found.hosts],
        series=[
            FoundSeries(fingerprint=one.fingerprint, application=one.application, workload=one.workload, tool=one.tool)
            for one in found.series
        ],
        applications=documents["applications"],
        recipes=documents["recipes"],
        workloads=documents["workloads"],
    )
