"""The REST API. One router per noun; errors in `problems`, bodies in `body`, callers in `auth`."""

from __future__ import annotations

from experiments.api import (
    alerts,
    audit,
    compare,
    documents,
    experiments,
    hosts,
    imports,
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
    searches,
    series,
    thresholds,
    timers,
    tokens,
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
    ("/runs", run_parts.router),
    ("/runs", recordings.router),
    ("/experiments", scaling.router),
    ("/searches", searches.router),
    ("", timers.router),
    ("/series", series.router),
    ("/alerts", alerts.router),
    ("/compare", compare.router),
    ("/imports", imports.router),
    ("/library", library.router),
    ("/metrics", metrics.router),
    ("/tokens", tokens.router),
    ("/thresholds", thresholds.router),
    ("/audit", audit.router),
):
    api.add_router(prefix, router)
