from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "experiments"

    def ready(self) -> None:
        from celery.signals import worker_shutting_down

        worker_shutting_down.connect(_hand_runs_over, weak=False)


def _hand_runs_over(**_arguments: Any) -> None:
    """A worker that is told to stop lets its runs go at once: another one adopts them, and no load is interrupted."""
    from experiments.running.executing.lease import handing_over

    handing_over.set()
