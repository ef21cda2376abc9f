import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A worker that fetches its runs over HTTPS takes those of one team; who showed itself before does so anew."""

    dependencies = [
        ("experiments", "0028_tunings_taken_up"),
    ]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="team",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="experiments.team"
            ),
        ),
    ]
