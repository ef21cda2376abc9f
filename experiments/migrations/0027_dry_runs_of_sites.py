from django.db import migrations, models


class Migration(migrations.Migration):
    """A dry run at a site whose keys stay there is given out to one of its workers, and again when that one is gone."""

    dependencies = [
        ("experiments", "0026_tuning_hosts"),
    ]

    operations = [
        migrations.AddField(
            model_name="dryrun",
            name="given_at",
            field=models.DateTimeField(null=True),
        ),
    ]
