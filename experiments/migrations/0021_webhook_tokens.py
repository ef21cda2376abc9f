from django.db import migrations, models


class Migration(migrations.Migration):
    """A webhook may post annotations to Grafana, with a token of the receiver."""

    dependencies = [("experiments", "0020_link_templates")]

    operations = [
        migrations.AddField("Webhook", "token", models.BinaryField(default=bytes, editable=False)),
        migrations.AlterField(
            "Webhook",
            "format",
            models.CharField(
                choices=[("json", "JSON"), ("slack", "Slack-compatible"), ("grafana", "Grafana annotations")],
                default="json",
                max_length=8,
            ),
        ),
    ]
