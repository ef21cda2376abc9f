from django.db import migrations, models


class Migration(migrations.Migration):
    """A tuning search may have several equal servers, and wait before it confirms; those of before have one."""

    dependencies = [("experiments", "0017_sites")]

    operations = [
        migrations.AddField(
            "Tuning", "further", models.ManyToManyField(blank=True, related_name="+", to="experiments.host")
        ),
        migrations.AddField("Tuning", "confirms_later", models.BooleanField(default=False)),
    ]
