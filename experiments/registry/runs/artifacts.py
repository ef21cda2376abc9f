"""Files of a run, kept in the database with their checksum."""

from __future__ import annotations

import hashlib

from agents.base.redaction import without_secrets
from experiments.models import Artifact, Run
from experiments.registry.errors import RequestError

MAX_ARTIFACT_BYTES = 16 << 20
TEXT_TYPES = ("text/", "application/json", "application/xml")


def artifact(run: Run, name: str, content: bytes, *, media_type: str = "text/plain; charset=utf-8") -> Artifact:
    """A file of the run, a text without secrets; the caller stores it. RequestError when it is too large."""
    if len(content) > MAX_ARTIFACT_BYTES:
        raise RequestError(f"{name} is larger than {MAX_ARTIFACT_BYTES >> 20} MB.", field="file")
    if media_type.startswith(TEXT_TYPES):
        content = without_secrets(content.decode("latin-1")).encode("latin-1")  # any byte stays what it is
    digest = hashlib.sha256(content).hexdigest()
    return Artifact(run=run, name=name, media_type=media_type, sha256=digest, content=content)


def keep(run: Run, name: str, content: bytes, *, media_type: str = "text/plain; charset=utf-8") -> Artifact:
    """Store a file of the run under its name, a text without secrets; the same name again replaces it."""
    new = artifact(run, name, content, media_type=media_type)
    kept, _ = Artifact.objects.update_or_create(
        run=run,
        name=name,
        defaults={"media_type": new.media_type, "sha256": new.sha256, "content": new.content},
    )
    return kept
