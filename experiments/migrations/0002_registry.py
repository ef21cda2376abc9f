"""The metric registry and the fence: one growing number for the whole installation."""

from django.db import migrations


def seed_metrics(apps, _schema_editor):
    from experiments.metrics import METRICS

    Metric = apps.get_model("experiments", "Metric")
    Metric.objects.bulk_create(
        Metric(
            name=metric.name,
            label=metric.label,
            unit=metric.unit,
            direction=metric.direction,
            noise_floor_ratio=metric.noise_floor_ratio,
            position=position,
        )
        for position, metric in enumerate(METRICS.values())
    )


class Migration(migrations.Migration):
    dependencies = [("experiments", "0001_initial")]

    operations = [
        migrations.RunSQL("CREATE SEQUENCE experiments_fence AS bigint", "DROP SEQUENCE experiments_fence"),
        migrations.RunPython(seed_metrics, migrations.RunPython.noop),
    ]
