"""Each run of a trend says which runs it is one point with; and the limits of a part of a team's histories."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
import numpy as np
from django.db import migrations, models

BEFORE = np.dtype([("at_s", "<f8"), ("number", "<i8"), ("value", "<f8")])
NOW = np.dtype([*((name, BEFORE[name]) for name in BEFORE.names or ()), ("key", "<i8")])


def name_variants(apps: Any, _schema: Any) -> None:
    """The variant of each run; the boots of old ones are not known. The next run searches the whole trend again."""
    Run, Trend = apps.get_model("experiments", "Run"), apps.get_model("experiments", "Trend")
    for trend in Trend.objects.exclude(packed=b"").select_related("series").iterator(chunk_size=100):
        points = np.frombuffer(trend.packed, BEFORE)
        runs = Run.objects.filter(
            team_id=trend.series.team_id, fingerprint=trend.series.fingerprint, variant__isnull=False
        )
        variants = dict(runs.values_list("number", "variant_id"))
        changed = np.zeros(len(points), NOW)
        for name in BEFORE.names or ():
            changed[name] = points[name]
        changed["key"] = [variants.get(number, 0) for number in points["number"].tolist()]
        trend.packed, trend.windows = changed.tobytes(), []
        trend.save(update_fields=["packed", "windows"])


def forget_variants(apps: Any, _schema: Any) -> None:
    Trend = apps.get_model("experiments", "Trend")
    for trend in Trend.objects.exclude(packed=b"").iterator(chunk_size=100):
        trend.packed = np.frombuffer(trend.packed, NOW)[list(BEFORE.names or ())].astype(BEFORE).tobytes()
        trend.windows = []
        trend.save(update_fields=["packed", "windows"])


class Migration(migrations.Migration):
    dependencies = [("experiments", "0006_clocks")]

    operations = [
        migrations.RunPython(name_variants, forget_variants),
        migrations.AddField("alert", "muted", models.BooleanField(default=False)),
        migrations.CreateModel(
            name="HistoryLimits",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("metric", models.CharField(blank=True, max_length=60)),
                ("values", models.JSONField(default=dict)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="history_limits",
                        to="experiments.team",
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="history_limits",
                        to="experiments.series",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["team", "series", "metric"], name="one_limits_per_series_and_metric"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("series", None)),
                        fields=["team", "metric"],
                        name="one_limits_per_metric_of_all_series",
                    ),
                ],
            },
        ),
    ]
