import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Hosts and workers have a site; those of before are at the central one, which has no row."""

    dependencies = [("experiments", "0016_files_outside")]

    operations = [
        migrations.CreateModel(
            name="Site",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=40, unique=True)),
                ("description", models.CharField(blank=True, max_length=200)),
                ("most_live_runs", models.PositiveIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AddField("Team", "quota_live_runs", models.PositiveIntegerField(default=200)),
        migrations.AddField("Worker", "site", models.CharField(blank=True, max_length=40)),
        migrations.AddField(
            "Host",
            "site",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="hosts",
                to="experiments.site",
            ),
        ),
    ]
