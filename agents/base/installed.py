"""Programs that the administrators of a host installed, told by their paths: an editor may name no others."""

from __future__ import annotations

import re
from typing import Any

from agents.base.rights import Gate

_ROOTS = r"/(?:usr|opt|srv|app|apps)"
_PARTS = r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._+@%,=-]+)"
_INSTALLED = re.compile(rf"{_ROOTS}{_PARTS}+/?")
_BARE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_WEB_APPLICATION = re.compile(rf"{_ROOTS}{_PARTS}*/(?:[A-Za-z0-9._#+@-]+\.war|webapps/[A-Za-z0-9._#+@-]+)")
_MANAGERS = ("manager", "host-manager", "manager.war", "host-manager.war")

WHERE = "below /usr, /opt, /srv, /app or /apps"
"""Where only root writes on an ordinary host, and where `docs/security.md` says that it has to be so."""


def installed(path: str) -> bool:
    """Whether it is a path of letters, digits and ._+@%,=- below one of these roots, without '..'."""
    return _INSTALLED.fullmatch(path) is not None


def installed_home(field: str) -> Gate:
    """The gate of a field that holds the directory of an installation, or nothing."""

    def harmless(part: Any) -> bool:
        path = getattr(part, field)
        return not path or installed(path)

    return Gate(f"a `{field}` that is not {WHERE}", harmless)


def program(*names: str) -> Gate:
    """The gate of a field `binary`: one of these programs, where administrators put them."""
    said = " or ".join(f"`{name}`" for name in names)
    return Gate(f"a `binary` that is not {said}, bare or {WHERE}", lambda tool: is_program(tool.binary, *names))


def is_program(path: str, *names: str) -> bool:
    """Whether this is one of the programs `names`: by its bare name, or at an installed path."""
    if path in names:
        return _BARE.fullmatch(path) is not None
    return installed(path) and path.rpartition("/")[2] in names


def is_web_application(path: str) -> bool:
    """Whether it names a web application that is installed: one of the server's own by name, a WAR, or in `webapps`.

    Any other directory would be served as files, whatever is in it; the manager deploys programs of its visitors.
    """
    if path.rpartition("/")[2] in _MANAGERS:
        return False
    return not path.startswith("/") or _WEB_APPLICATION.fullmatch(path) is not None
