from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0009_until_not_worse")]

    operations = [
        migrations.AddField(
            model_name=name,
            name="key_order",
            field=models.JSONField(default=list, editable=False),
        )
        for name in ("application", "recipe", "workload")
    ]
