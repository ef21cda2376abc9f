"""Every URL of BenchHub: pages, REST API, login."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from experiments.api import api
from experiments.api.cli import benchhub_ci

handler500 = "benchhub.failures.server_error"

urlpatterns: list[URLPattern | URLResolver] = [
    path("accounts/", include("allauth.urls")),
    path("api/v1/", api.urls),
    path("cli/benchhub-ci", benchhub_ci, name="benchhub-ci"),
    path("", include("frontend.urls")),
]
