from django.db import migrations, models


class Migration(migrations.Migration):
    """Files of runs may be outside of the database. What is in it stays there until `file_moving` takes it out."""

    dependencies = [("experiments", "0015_tuning")]

    operations = [
        migrations.CreateModel(
            name="UnusedFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("stored", models.CharField(max_length=200, unique=True)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            "Artifact", "stored", models.CharField(editable=False, max_length=200, null=True, unique=True)
        ),
        migrations.AddField("Artifact", "stored_bytes", models.BigIntegerField(editable=False, null=True)),
        migrations.AlterField("Artifact", "content", models.BinaryField(null=True)),
        migrations.AddConstraint(
            "Artifact",
            models.CheckConstraint(
                condition=models.Q(content__isnull=False, stored__isnull=True, stored_bytes__isnull=True)
                | models.Q(content__isnull=True, stored__isnull=False, stored_bytes__isnull=False),
                name="artifact_content_in_one_place",
            ),
        ),
    ]
