"""Which hosts are one machine under several names."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0002_registry")]

    operations = [
        migrations.CreateModel(
            name="Machine",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("boot_id", models.CharField(blank=True, max_length=64)),
                ("past_boots", models.JSONField(default=list)),
            ],
        ),
        migrations.AddField(
            model_name="host",
            name="machine",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="hosts",
                to="experiments.machine",
            ),
        ),
        migrations.AddField(model_name="host", name="place", field=models.TextField(blank=True)),
        migrations.AddField(model_name="host", name="boot_id", field=models.CharField(blank=True, max_length=64)),
        migrations.AddField(model_name="host", name="installation", field=models.CharField(blank=True, max_length=64)),
        migrations.AddField(model_name="host", name="hardware", field=models.CharField(blank=True, max_length=64)),
    ]
