from django.db import migrations, models


class Migration(migrations.Migration):
    """Whether a tuning search began with what was better before, so that a copy of it does the same."""

    dependencies = [
        ("experiments", "0030_tunings_looked_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="tuning",
            name="warm",
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
