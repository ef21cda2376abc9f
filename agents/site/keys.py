"""The keys by which a site's worker logs in: files of the site, which never leave it."""

from __future__ import annotations

from pathlib import Path

from agents.base.errors import ConnectError

DEFAULT = "default"


class Keys:
    """A directory with private keys in OpenSSH or PEM form: one named as a host, else the one named `default`."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ValueError(f"--keys: {folder} is no directory")
        self._folder = folder

    def of(self, host: str) -> str:
        """The private key for the host. ConnectError, permanent, when the site has none that can be read."""
        for name in (host, DEFAULT):
            path = self._folder / name
            if Path(name).name != name or not path.is_file():
                continue
            if path.stat().st_mode & 0o077:
                raise ConnectError(
                    f"{path} may be read by others, so the site's worker does not use it.",
                    hint=f"chmod 600 {path}",
                    permanent=True,
                )
            return path.read_text()
        raise ConnectError(
            f"The site's worker has no key for {host}.",
            hint=f"Put its private key into the worker's --keys directory, as {host} or as {DEFAULT}.",
            permanent=True,
        )
