import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A tuning search may have several equal servers, and wait before it confirms; those of before have one and do not."""

    dependencies = [
        ("experiments", "0025_prometheus"),
    ]

    operations = [
        migrations.AddField(
            model_name="tuning",
            name="confirm_after_hours",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="tuning",
            name="confirms_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="TuningSut",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField()),
                ("confirms", models.BooleanField(default=False)),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="experiments.host"
                    ),
                ),
                (
                    "tuning",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="further_suts",
                        to="experiments.tuning",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
                "constraints": [
                    models.UniqueConstraint(fields=("tuning", "position"), name="one_tuning_sut_per_position"),
                    models.UniqueConstraint(fields=("tuning", "host"), name="one_part_per_tuning_sut"),
                ],
            },
        ),
    ]
