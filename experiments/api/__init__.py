"""The REST API. One router per noun; errors in `problems`, bodies in `body`, callers in `auth`."""

from __future__ import annotations

from experiments.api import (
    audit,
    compare,
    documents,
    experiments,
    hosts,
    imports,
    me,
    metrics,
    profiles,
    reservations,
    run_parts,
    runs,
    series,
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
    ("/runs", runs.router),
    ("/runs", run_parts.router),
    ("/series", series.router),
    ("/compare", compare.router),
    ("/imports", imports.router),
    ("/metrics", metrics.router),
    ("/tokens", tokens.router),
    ("/audit", audit.router),
):
    api.add_router(prefix, router)
