from django.db import migrations, models


class Migration(migrations.Migration):
    """A team and a host have templates of links to other tools."""

    dependencies = [("experiments", "0018_months")]

    operations = [
        migrations.AddField("Team", "link_templates", models.JSONField(blank=True, default=list)),
        migrations.AddField("Host", "link_templates", models.JSONField(blank=True, default=list)),
    ]
