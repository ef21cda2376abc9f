"""`benchhub-ci` as this installation serves it: the package as one file that Python runs."""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import lru_cache

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import condition, require_safe

from clients.benchhub_ci.command_line import VERSION_FILE

_SOURCE = settings.BASE_DIR / "clients" / "benchhub_ci"
_PLACE = f"clients/{_SOURCE.name}"
_SHARED = tuple(f"clients/python/benchhub_client/{name}.py" for name in ("connection", "ending", "waiting"))
_PACKAGES = ("clients", "clients/python", "clients/python/benchhub_client")
_SHEBANG = b"#!/usr/bin/env python3\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes wherever and whenever it is made


@lru_cache(maxsize=1)
def archive() -> bytes:
    """A zip application (PEP 441), not compressed, so that its bytes depend on the source alone."""
    modules = {f"{_PLACE}/{path.name}": path.read_bytes() for path in sorted(_SOURCE.glob("*.py"))}
    modules |= {path: (settings.BASE_DIR / path).read_bytes() for path in _SHARED}
    modules["__main__.py"] = modules[f"{_PLACE}/__main__.py"]
    build = hashlib.sha256(repr(sorted(modules.items())).encode()).hexdigest()[:12]
    modules |= {f"{package}/__init__.py": b"" for package in _PACKAGES}
    modules[f"{_PLACE}/{VERSION_FILE}"] = f"{settings.VERSION} (build {build})\n".encode()
    whole = io.BytesIO()
    whole.write(_SHEBANG)
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as packed:
        for name in sorted(modules):
            packed.writestr(zipfile.ZipInfo(name, _EPOCH), modules[name])
    return whole.getvalue()


def _etag(_request: HttpRequest) -> str:
    return f'"{hashlib.sha256(archive()).hexdigest()[:32]}"'


@require_safe
@condition(etag_func=_etag)
def benchhub_ci(_request: HttpRequest) -> HttpResponse:
    """The command line tool for CI: one file, Python's standard library only."""
    response = HttpResponse(archive(), content_type="application/octet-stream")
    response["Content-Disposition"] = 'attachment; filename="benchhub-ci"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "no-cache"
    return response
