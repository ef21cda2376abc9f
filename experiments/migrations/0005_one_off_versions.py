"""Versions that a run's changed specification made: they are nobody's newest version."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0004_installation")]

    operations = [
        migrations.AddField(model, "one_off", models.BooleanField(default=False))
        for model in ("application", "recipe", "workload")
    ]
