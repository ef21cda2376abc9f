from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0007_history_points")]

    operations = [
        migrations.AddField(
            model_name="capacitysearch",
            name="coverage_ratio",
            field=models.FloatField(null=True),
        ),
    ]
