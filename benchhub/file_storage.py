"""Where the files of runs are that are too large for a row, as the environment says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from benchhub.environment import envlist, envpath, envsecret


def file_storage(data_dir: Path, *, one_machine: bool) -> dict[str, Any] | None:
    """The entry of Django's STORAGES; None: everything stays in the database.

    A bucket when one is named, else a directory. One machine has its own directory; elsewhere somebody has to say which
    one all processes share, as a file in a container's own disk would be lost with it. ImproperlyConfigured when both
    are set, or parts of a bucket without its name.
    """
    directory, bucket = envpath("BENCHHUB_FILES_DIR"), "".join(envlist("BENCHHUB_BUCKET"))
    endpoint, region = "".join(envlist("BENCHHUB_BUCKET_ENDPOINT")), "".join(envlist("BENCHHUB_BUCKET_REGION"))
    prefix = "".join(envlist("BENCHHUB_BUCKET_PREFIX"))
    key_id, secret = envsecret("BENCHHUB_BUCKET_KEY_ID") or "", envsecret("BENCHHUB_BUCKET_SECRET") or ""
    if not bucket:
        if endpoint or region or prefix or key_id or secret:
            raise ImproperlyConfigured("Set BENCHHUB_BUCKET as well: the settings beside it are of a bucket.")
        if directory is None and not one_machine:
            return None
        return {
            "BACKEND": "benchhub.files_on_disk.FilesOnDisk",
            "OPTIONS": {"location": str(directory or data_dir / "files")},
        }
    if directory is not None:
        raise ImproperlyConfigured("BENCHHUB_BUCKET and BENCHHUB_FILES_DIR are both set; keep one.")
    if bool(key_id) != bool(secret):
        raise ImproperlyConfigured("Set both BENCHHUB_BUCKET_KEY_ID and BENCHHUB_BUCKET_SECRET, or neither.")
    if endpoint and not endpoint.startswith(("https://", "http://")):
        raise ImproperlyConfigured(f"BENCHHUB_BUCKET_ENDPOINT begins with https:// or http://, not {endpoint!r}.")
    options = {"bucket": bucket, "endpoint": endpoint, "region": region, "prefix": prefix.strip("/")}
    return {
        "BACKEND": "benchhub.files_on_s3.FilesOnS3",
        "OPTIONS": {**options, "key_id": key_id, "secret": secret},
    }
