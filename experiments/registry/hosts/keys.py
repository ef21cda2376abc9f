"""Private SSH keys at rest: encrypted with keys from a file, one derived key per row, so rows cannot be swapped."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

SECOND_FACTOR_ROW = "second factor"
"""The name under which the secrets of second factors are sealed: what stores them tells nothing of the row."""

_SALT_BYTES = 16
_KEY_BYTES = 32


class KeyFileError(Exception):
    """The key file is missing or broken, or none of its keys opens a stored secret."""


def seal(text: str, *, row: str) -> bytes:
    """`text` encrypted for one row (for example "host:12") with the first key of the file."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return salt + _cipher(salt, row).encrypt(text.encode())


def unseal(sealed: bytes, *, row: str) -> str:
    """The text behind `sealed`; KeyFileError when no key of the file opens it for this row."""
    salt, token = sealed[:_SALT_BYTES], sealed[_SALT_BYTES:]
    try:
        return _cipher(salt, row).decrypt(token).decode()
    except InvalidToken as error:
        raise KeyFileError(f"No key in {settings.BENCHHUB_KEY_FILE} opens the secret of {row}.") from error


def rotated(sealed: bytes, *, row: str) -> bytes:
    """The same secret under the first key of the file."""
    return seal(unseal(sealed, row=row), row=row)


def is_under_first_key(sealed: bytes, *, row: str) -> bool:
    """Whether the first key of the file opens the secret; False says nothing of the others."""
    salt, token = sealed[:_SALT_BYTES], sealed[_SALT_BYTES:]
    first = _keys(Path(settings.BENCHHUB_KEY_FILE))[0]
    try:
        Fernet(_derived(first, salt, row)).decrypt(token)
    except InvalidToken:
        return False
    return True


def _cipher(salt: bytes, row: str) -> MultiFernet:
    return MultiFernet([Fernet(_derived(key, salt, row)) for key in _keys(Path(settings.BENCHHUB_KEY_FILE))])


def _derived(key: bytes, salt: bytes, row: str) -> bytes:
    derived = HKDF(SHA256(), length=_KEY_BYTES, salt=salt, info=f"benchhub {row}".encode()).derive(key)
    return base64.urlsafe_b64encode(derived)


def _keys(path: Path) -> list[bytes]:
    """The keys of the file, one a line, newest first; empty lines and lines that begin with # are passed over."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(f"The key file {path} cannot be read: {error}") from error
    found = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            key = base64.urlsafe_b64decode(text)
        except ValueError as error:
            raise KeyFileError(f"Line {number} of {path} is not a key.") from error
        if len(key) != _KEY_BYTES:
            raise KeyFileError(f"Line {number} of {path} is not a key of {_KEY_BYTES} bytes.")
        found.append(key)
    if not found:
        raise KeyFileError(f"The key file {path} holds no key.")
    return found
