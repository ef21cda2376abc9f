import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Traces of runs that are to be handed to a collector."""

    dependencies = [("experiments", "0021_webhook_tokens")]

    operations = [
        migrations.CreateModel(
            name="RunTrace",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="trace",
                        serialize=False,
                        to="experiments.run",
                    ),
                ),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField(null=True)),
                ("sent_at", models.DateTimeField(null=True)),
                ("problem", models.TextField(blank=True)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="trace_due")
                ]
            },
        ),
    ]
