import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0010_document_key_order"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AlertRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("figure", "a figure of a run beyond a limit"),
                            ("verdict", "a candidate is worse, or fails"),
                            ("run_failed", "a run failed or was lost"),
                        ],
                        max_length=10,
                    ),
                ),
                ("metric", models.CharField(blank=True, max_length=60)),
                ("side", models.CharField(blank=True, choices=[("above", "Above"), ("below", "Below")], max_length=5)),
                ("limit", models.FloatField(null=True)),
                ("workload", models.CharField(blank=True, max_length=120)),
                ("labels", models.JSONField(default=dict)),
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
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="alert_rules", to="experiments.team"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BrokenRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sentence", models.TextField()),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "experiment",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="experiments.experiment",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="broken", to="experiments.alertrule"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="experiments.run"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.UniqueConstraint(fields=("team", "name"), name="alert_rule_name_once_per_team"),
        ),
        migrations.AddIndex(
            model_name="brokenrule",
            index=models.Index(fields=["rule", "-id"], name="broken_rule_newest"),
        ),
    ]
