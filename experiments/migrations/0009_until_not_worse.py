from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0008_search_coverage")]

    operations = [
        migrations.AlterField(
            model_name="experiment",
            name="stop_rule",
            field=models.CharField(
                choices=[
                    ("fixed", "after the repetitions"),
                    ("until_clear", "when the verdict is clear"),
                    ("until_not_worse", "when it is worse, or not worse beyond the margin"),
                    ("until_precise", "when the interval is narrow enough"),
                ],
                default="fixed",
                max_length=16,
            ),
        ),
    ]
