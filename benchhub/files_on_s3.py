"""The files of runs in a bucket that speaks S3. Loaded only where one is set: its client takes a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage

LINK_S = 300
"""A signed link is for the browser that was just sent there, not for a chat."""
_PART_BYTES = 8 << 20
_AT_ONCE = 2
"""Parts under way: an upload takes that many of them in memory."""


class FilesOnS3(S3Storage):  # type: ignore[misc]  # django-storages is untyped
    """Bounded in memory and in time; whatever goes wrong is an OSError, as on a disk."""

    def __init__(self, *, bucket: str, endpoint: str, region: str, prefix: str, key_id: str, secret: str) -> None:
        super().__init__(
            bucket_name=bucket,
            endpoint_url=endpoint or None,
            region_name=region or None,
            location=prefix,
            access_key=key_id or None,
            secret_key=secret or None,
            default_acl=None,
            file_overwrite=True,  # names are made to be new: nobody needs to ask
            querystring_expire=LINK_S,
            transfer_config=TransferConfig(multipart_chunksize=_PART_BYTES, max_concurrency=_AT_ONCE),
            client_config=Config(
                signature_version="s3v4",
                connect_timeout=5,
                read_timeout=30,
                retries={"max_attempts": 4, "mode": "standard"},
                s3={"addressing_style": "path" if endpoint else "auto"},
                # Newer sums are Amazon's own: other servers refuse them. Ours is in the row.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )

    def _save(self, name: str, content: Any) -> str:
        with _as_of_a_disk(name):
            return str(super()._save(name, content))

    def _open(self, name: str, mode: str = "rb") -> File:  # type: ignore[type-arg]
        """The object's bytes as they come: django-storages would fetch it whole before the first one is read."""
        with _as_of_a_disk(name):
            return _Body(self.bucket.Object(self._normalize_name(name)).get()["Body"], name)

    def delete(self, name: str) -> None:
        with _as_of_a_disk(name):
            super().delete(name)

    def size(self, name: str) -> int:
        with _as_of_a_disk(name):
            return int(self.bucket.Object(self._normalize_name(name)).content_length)

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        with _as_of_a_disk(name):
            directories, files = super().listdir(name)
            return directories, files


class _Body(File):  # type: ignore[type-arg]  # generic for mypy alone
    """An object that is being fetched; a connection that breaks amid it is an OSError."""

    def __init__(self, body: Any, name: str) -> None:
        super().__init__(body, name)
        self._body = body

    def read(self, size: int = -1) -> bytes:
        with _as_of_a_disk(str(self.name)):
            return bytes(self._body.read(None if size < 0 else size))


@contextmanager
def _as_of_a_disk(name: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
            raise FileNotFoundError(f"{name}: {error}") from error
        raise OSError(str(error)) from error
    except (BotoCoreError, Boto3Error) as error:
        raise OSError(str(error)) from error
