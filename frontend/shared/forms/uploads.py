"""Text files that people upload: bounded in characters, like the same text in a body of the API."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import UploadedFile

from experiments.registry.errors import RequestError

_MOST_BYTES_OF_A_CHAR = 4


def text_of(upload: UploadedFile[Any], most_chars: int, *, field: str, what: str = "The file") -> str:
    """The file's text. RequestError when it is longer, no UTF-8, or holds NUL characters; nothing longer is read."""
    size_bytes = upload.size or 0
    if size_bytes <= _MOST_BYTES_OF_A_CHAR * (most_chars + 1):  # one more: the mark of the byte order
        try:
            text = upload.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise RequestError(f"{what} is not UTF-8 text.", field=field) from error
        if "\0" in text:
            raise RequestError(f"{what} holds NUL characters; it is no text.", field=field)
        if len(text) <= most_chars:
            return str(text)
    raise RequestError(
        f"{what} has {size_bytes:,} bytes; at most {most_chars:,} characters are read here.", field=field
    )
