import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0013_profiled_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="canaries_first",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="host",
            name="canaries_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="host",
            name="last_canaries",
            field=models.JSONField(default=dict),
        ),
        migrations.CreateModel(
            name="HostCanary",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("check_name", models.CharField(max_length=12)),
                ("value", models.FloatField(null=True)),
                ("problem", models.TextField(blank=True)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "experiment",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="host_canaries",
                        to="experiments.experiment",
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="canaries", to="experiments.host"
                    ),
                ),
                (
                    "peer",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="experiments.host"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["host", "check_name", "-id"], name="host_canary_newest")],
            },
        ),
    ]
