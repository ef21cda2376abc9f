"""The fence: one growing number for the whole installation."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("experiments", "0001_initial")]

    operations = [
        migrations.RunSQL("CREATE SEQUENCE experiments_fence AS bigint", "DROP SEQUENCE experiments_fence"),
    ]
