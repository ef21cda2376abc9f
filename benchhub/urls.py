"""Every URL of BenchHub: pages, REST API, tools for assistants, login."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, re_path

from experiments.api import api
from experiments.api.cli import benchhub_ci
from experiments.api.plumbing.schema import unknown_address
from experiments.mcp.views import mcp

handler500 = "benchhub.failures.server_error"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("benchhub.identity_provider")),
    path("accounts/", include("allauth.urls")),
    path("api/v1/", api.urls),
    re_path(r"^api(?:/|$)", unknown_address),
    re_path(r"^mcp/?$", mcp, name="mcp"),
    path("cli/benchhub-ci", benchhub_ci, name="benchhub-ci"),
    path("", include("frontend.urls")),
]
