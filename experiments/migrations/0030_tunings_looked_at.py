from django.db import migrations, models


class Migration(migrations.Migration):
    """How many trials a tuning search had when its pairs were last looked at; of those of before nobody knows."""

    dependencies = [
        ("experiments", "0029_teams_of_workers"),
    ]

    operations = [
        migrations.AddField(
            model_name="tuning",
            name="looked_at",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
    ]
