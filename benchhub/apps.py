"""The app that holds the wiring: management commands, and the Celery app that tasks are bound to."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.core.management import call_command
from django.db.models.signals import post_migrate


class BenchhubConfig(AppConfig):
    name = "benchhub"
    verbose_name = "BenchHub"

    def ready(self) -> None:
        # Shared tasks need an app in every process that sends them; what workers say of themselves needs the models.
        from benchhub import celery, workers  # noqa: F401

        # Django tells only apps that have models.
        post_migrate.connect(_make_cache_table, sender=apps.get_app_config("experiments"))


def _make_cache_table(using: str, **_arguments: Any) -> None:
    call_command("createcachetable", database=using, verbosity=0)
