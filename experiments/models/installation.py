"""What tells this installation from every other one."""

from __future__ import annotations

import uuid

from django.db import models


class Installation(models.Model):
    """One row, made when it is first asked for. It goes with the database: a restored backup is the same installation,
    and a new database is another one, whatever its address.
    """

    only = models.BooleanField(primary_key=True, default=True)
    uuid = models.UUIDField(default=uuid.uuid4, editable=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(only=True), name="one_installation")]

    def __str__(self) -> str:
        return str(self.uuid)
