import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Sites whose workers come over HTTPS, and the tokens by which they do."""

    dependencies = [("experiments", "0022_run_traces")]

    operations = [
        migrations.AddField("Site", "keys_stay", models.BooleanField(default=False)),
        migrations.AddField(
            "Token",
            "site",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="experiments.site",
            ),
        ),
    ]
