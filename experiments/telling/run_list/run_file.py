"""A file of a run as a download: from its row, from the disk in pieces, or from a bucket that has a link for it."""

from __future__ import annotations

from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect

from experiments.models import Artifact
from experiments.registry.runs.file_store import link, opened
from experiments.telling.run_list.csv_response import WholeFile


def run_file(file: Artifact, *, disposition: str, content_type: str) -> HttpResponseBase:
    """The answer with what the file holds; `disposition` names it for whoever saves it.

    Whoever calls this has checked that the person may read it. A link that leads elsewhere is kept by nobody on the
    way: it opens for everybody for some minutes. NotFound, FileStoreError.
    """
    response: HttpResponseBase
    if (elsewhere := link(file, disposition=disposition, media_type=content_type)) is not None:
        response = HttpResponseRedirect(elsewhere)
        response["Cache-Control"] = "no-store"
        response["Referrer-Policy"] = "no-referrer"
        return response
    if file.stored is None:
        response = HttpResponse(bytes(file.content or b""), content_type=content_type)
    else:
        response = WholeFile(opened(file), content_type=content_type, filename="")
        response["Content-Length"] = str(file.stored_bytes)
    response["Content-Disposition"] = disposition
    response["X-Content-Type-Options"] = "nosniff"
    return response
