from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from pytest_django import Settings

from experiments.models import Installation
from experiments.registry.hosts.installation import installation

pytestmark = pytest.mark.django_db


def test_an_installation_keeps_its_id_and_shows_its_address(settings: Settings) -> None:
    settings.BENCHHUB_URL = "https://perf.example"
    first = installation()
    settings.BENCHHUB_URL = "https://moved.example"
    second = installation()
    assert first.id == second.id
    assert (first.name, second.name) == ("https://perf.example", "https://moved.example")


def test_a_new_database_is_another_installation() -> None:
    first = installation()
    Installation.objects.all().delete()
    assert installation().id != first.id


def test_a_database_has_one_id() -> None:
    installation()
    with pytest.raises(IntegrityError), transaction.atomic():
        Installation.objects.bulk_create([Installation(only=False)])
