from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """When a lease was first seen to be over, and how far the clocks of BenchHub's processes and hosts are ahead."""

    dependencies = [("experiments", "0005_one_off_versions")]

    operations = [
        migrations.AddField("run", "doubted_at", models.DateTimeField(null=True)),
        migrations.AddField("worker", "clock_ahead_s", models.FloatField(default=0.0)),
        migrations.AddField("canary", "clock_ahead_s", models.FloatField(default=0.0)),
        migrations.AddField("host", "clock_ahead_s", models.FloatField(null=True)),
    ]
