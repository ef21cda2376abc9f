"""The installation's id, by which hosts tell its runs from those of another BenchHub."""

import uuid

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0003_machines")]

    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("only", models.BooleanField(default=True, primary_key=True, serialize=False)),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("only", True)), name="one_installation")]
            },
        ),
    ]
