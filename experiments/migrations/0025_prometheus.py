import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


def _of(model: str, related_name: str) -> models.ForeignKey:
    return models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name=related_name, to=model)


class Migration(migrations.Migration):
    """The Prometheus servers of a team, and what is read from them around its runs."""

    dependencies = [
        ("experiments", "0023_site_tokens"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PrometheusSource",
            fields=[
                ("id", _ID),
                ("name", models.CharField(max_length=120)),
                ("url", models.CharField(max_length=1000)),
                (
                    "auth",
                    models.CharField(
                        choices=[("none", "none"), ("bearer", "bearer token"), ("basic", "user and password")],
                        default="none",
                        max_length=6,
                    ),
                ),
                ("username", models.CharField(blank=True, max_length=200)),
                ("secret", models.BinaryField(default=bytes, editable=False)),
                ("queries", models.JSONField(default=list)),
                ("is_active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("team", _of("experiments.team", "prometheus_sources")),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("team", "name"), name="prometheus_name_once_per_team")]
            },
        ),
        migrations.CreateModel(
            name="PrometheusReading",
            fields=[
                ("id", _ID.clone()),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField(null=True)),
                ("read_at", models.DateTimeField(null=True)),
                ("problem", models.TextField(blank=True)),
                ("channels", models.JSONField(default=list)),
                ("clock_ahead_s", models.FloatField(null=True)),
                ("run", _of("experiments.run", "prometheus_readings")),
                ("source", _of("experiments.prometheussource", "readings")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("run", "source"), name="one_reading_per_run_and_source")
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="prometheus_due"
                    )
                ],
            },
        ),
    ]
