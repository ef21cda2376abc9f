"""The REST API. One router per noun; errors in `problems`, bodies in `body`, callers in `auth`."""

from __future__ import annotations

from experiments.api import (
    alerts,
    audit,
    baselines,
    bisections,
    bulk,
    chart_notes,
    compare,
    documents,
    experiments,
    hosts,
    imports,
    ingest,
    invitations,
    library,
    me,
    metrics,
    profiles,
    recordings,
    reports,
    reservations,
    run_parts,
    runs,
    scaling,
    schedules,
    searches,
    series,
    shares,
    team,
    thresholds,
    timers,
    tokens,
    trash,
    webhooks,
)
from experiments.api.body import StrictParser
from experiments.api.problems import install
from experiments.api.schema import DocumentedAPI

__all__ = ["api"]

api = DocumentedAPI(
    title="BenchHub",
    version="1",
    description="Experiments, runs and their results. Sign in with `Authorization: Bearer bh_<id>_<secret>`.",
    urls_namespace="api-1",
    parser=StrictParser(),
    docs_url=None,
)
install(api)
for prefix, router in (
    ("", me.router),
    ("/hosts", hosts.router),
    ("/reservations", reservations.router),
    ("/profiles", profiles.router),
    ("/applications", documents.applications),
    ("/recipes", documents.recipes),
    ("/workloads", documents.workloads),
    ("/experiments", experiments.router),
    ("/experiments", reports.router),
    ("/runs", runs.router),
    ("/runs", bulk.router),
    ("/runs", run_parts.router),
    ("/runs", recordings.router),
    ("/experiments", scaling.router),
    ("/searches", searches.router),
    ("/bisections", bisections.router),
    ("/schedules", schedules.router),
    ("", timers.router),
    ("/series", series.router),
    ("/alerts", alerts.router),
    ("/annotations", chart_notes.router),
    ("/baselines", baselines.router),
    ("/compare", compare.router),
    ("/imports", imports.router),
    ("/results", ingest.router),
    ("/library", library.router),
    ("/metrics", metrics.router),
    ("", team.router),
    ("/invitations", invitations.router),
    ("/tokens", tokens.router),
    ("/thresholds", thresholds.router),
    ("/shares", shares.router),
    ("/trash", trash.router),
    ("/webhooks", webhooks.router),
    ("/audit", audit.router),
):
    api.add_router(prefix, router)
