"""The Celery app; its settings are the CELERY_ ones of Django."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, celeryd_init, setup_logging
from django.conf import settings

from benchhub import embedded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchhub.settings")
# Else each worker, and beat, looks over every address at its start, and loads all pages and the API for that.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("benchhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()  # for every thread, not only the importing one


@celeryd_init.connect
def _find_tasks(**_arguments: Any) -> None:
    """In a worker only: beat sends tasks by name, and needs nothing of what they do."""
    app.autodiscover_tasks(force=True)  # at once: Celery has told those who wait for its own moment already


@celeryd_init.connect
@beat_init.connect
def _start_embedded_services(**_arguments: Any) -> None:
    if settings.BENCHHUB_EMBEDDED:
        embedded.ensure(settings.BENCHHUB_DATA_DIR)


@setup_logging.connect
def _keep_django_logging(**_arguments: Any) -> None:
    """Being connected is the point: Celery then leaves the logging of the settings alone."""
