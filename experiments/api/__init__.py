"""The REST API. One router per noun; errors in `problems`, bodies in `body`, callers in `auth`."""

from __future__ import annotations

from experiments.api import (
    alert_rules,
    alerts,
    audit,
    baselines,
    bisections,
    bulk,
    chart_notes,
    compare,
    documents,
    everything,
    experiments,
    frames,
    hosts,
    imports,
    ingest,
    invitations,
    jmeter_plans,
    library,
    machine_factors,
    me,
    metrics,
    notes,
    profiles,
    queue,
    rankings,
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
    views,
    webhooks,
)
from experiments.api.plumbing.body import StrictParser
from experiments.api.plumbing.problems import install
from experiments.api.plumbing.rendering import Renderer
from experiments.api.plumbing.schema import DocumentedAPI

__all__ = ["api"]

api = DocumentedAPI(
    title="BenchHub",
    version="1",
    description="Experiments, runs and their results. Sign in with `Authorization: Bearer bh_<id>_<secret>`.",
    urls_namespace="api-1",
    openapi_extra={
        "info": {
            "contact": {"name": "Whoever operates this installation"},
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        }
    },
    parser=StrictParser(),
    renderer=Renderer(),
    docs_url=None,
)
install(api)
for prefix, router in (
    ("", me.router),
    ("", frames.router),  # before the series, whose fingerprint could end so
    ("/search", everything.router),
    ("/queue", queue.router),
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
    ("/runs", reports.of_runs),
    ("/runs", recordings.router),
    ("/experiments", scaling.router),
    ("/experiments", rankings.router),
    ("/searches", searches.router),
    ("/bisections", bisections.router),
    ("/schedules", schedules.router),
    ("", timers.router),
    ("", notes.router),
    ("/views", views.router),
    ("/series", series.router),
    ("/alerts", alerts.router),
    ("/alert-rules", alert_rules.router),
    ("/annotations", chart_notes.router),
    ("/baselines", baselines.router),
    ("/compare", compare.router),
    ("/machine-factors", machine_factors.router),
    ("/imports", imports.router),
    ("/results", ingest.router),
    ("/library", library.router),
    ("/jmeter-plans", jmeter_plans.router),
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
