import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0014_host_canaries"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Tuning",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("parameters", models.JSONField(default=dict)),
                ("labels", models.JSONField(default=dict)),
                ("priority", models.SmallIntegerField(choices=[(-1, "Low"), (0, "Normal"), (1, "High")], default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("finished", "Finished"),
                            ("stopped", "stopped without an answer"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="running",
                        max_length=16,
                    ),
                ),
                ("sentence", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("space", models.JSONField()),
                ("default", models.JSONField()),
                ("metric", models.CharField(max_length=60)),
                ("higher_is_better", models.BooleanField()),
                ("limits", models.JSONField(default=list)),
                ("margin_ratio", models.FloatField(default=0.03)),
                ("budget_runs", models.PositiveSmallIntegerField()),
                ("budget_hours", models.FloatField(null=True)),
                ("seed", models.PositiveIntegerField()),
                ("paused", models.BooleanField(default=False)),
                ("reduces", models.BooleanField(default=False)),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "no answer"),
                            ("better", "Better"),
                            ("nothing_better", "nothing better"),
                            ("budget_too_small", "budget too small"),
                        ],
                        default="",
                        max_length=16,
                    ),
                ),
                ("best", models.JSONField(null=True)),
                ("winner", models.JSONField(null=True)),
                ("gain_ratio", models.FloatField(null=True)),
                ("low_ratio", models.FloatField(null=True)),
                ("high_ratio", models.FloatField(null=True)),
                ("more_runs", models.PositiveIntegerField(null=True)),
                ("smallest", models.JSONField(null=True)),
                (
                    "application",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="experiments.application"
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "drivers",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="experiments.driverset"
                    ),
                ),
                (
                    "recipe",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="experiments.recipe"
                    ),
                ),
                (
                    "smaller_recipe",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="experiments.recipe",
                    ),
                ),
                (
                    "sut",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="experiments.host"
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tunings", to="experiments.team"
                    ),
                ),
                (
                    "workload",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="experiments.workload"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TuningTrial",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField()),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("control", "Control"),
                            ("explore", "Explore"),
                            ("repeat", "Repeat"),
                            ("confirm", "Confirm"),
                            ("revert", "reduce"),
                        ],
                        max_length=8,
                    ),
                ),
                ("config", models.JSONField()),
                ("why", models.CharField(max_length=200)),
                ("host", models.PositiveSmallIntegerField(default=0)),
                ("block", models.PositiveSmallIntegerField(default=0)),
                (
                    "result",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "not over"),
                            ("ok", "measured"),
                            ("invalid", "Invalid"),
                            ("crashed", "Crashed"),
                            ("refused", "Refused"),
                        ],
                        default="",
                        max_length=8,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("figure", models.FloatField(null=True)),
                ("bounded", models.JSONField(default=list)),
                ("start_hours", models.FloatField(default=0.0)),
                ("duration_s", models.FloatField(default=0.0)),
                (
                    "run",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tuning_trial",
                        to="experiments.run",
                    ),
                ),
                (
                    "tuning",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="trials", to="experiments.tuning"
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.AddIndex(
            model_name="tuning",
            index=models.Index(fields=["team", "-id"], name="tuning_newest"),
        ),
        migrations.AddConstraint(
            model_name="tuningtrial",
            constraint=models.UniqueConstraint(fields=("tuning", "position"), name="one_tuning_trial_per_position"),
        ),
    ]
