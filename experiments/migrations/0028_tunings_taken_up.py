from django.db import migrations, models


class Migration(migrations.Migration):
    """A tuning search that was stopped may be taken up again; those of before were not."""

    dependencies = [
        ("experiments", "0027_dry_runs_of_sites"),
    ]

    operations = [
        migrations.AddField(
            model_name="tuning",
            name="taken_up_at",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="tuning",
            name="looks",
            field=models.PositiveSmallIntegerField(db_default=1, default=1),
        ),
    ]
