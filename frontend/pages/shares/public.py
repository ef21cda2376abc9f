"""What somebody sees who was only sent a link: no login, no cookie, no script, nothing but the frozen sheet."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.adapter import get_adapter
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response, set_response_etag
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from experiments.models import ShareLink
from experiments.telling.sharing.links import count_opening, live_link, sheet_of
from experiments.telling.sharing.pictures import badge_of, picture_of, plot_named, png
from experiments.telling.sharing.sheet import Sheet
from experiments.telling.sharing.sheet_files import sheet_file

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors {ancestors}"
)
MOST_PER_MINUTE = 300
"""Requests of one address; a page of pictures is a few."""
PICTURE_AGE_S = 300
"""How long others may keep a picture: for so long a revoked one may still be seen in a README."""

Shown = Callable[[HttpRequest, ShareLink, Sheet], HttpResponse]


def shared(*, ancestors: str = "'none'") -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """A view of a live link: `view(request, link, sheet, ...)`. Whatever else was asked for is the same plain 404."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @require_safe
        @wraps(view)
        def page(request: HttpRequest, token: str, *args: Any, **kwargs: Any) -> HttpResponse:
            if _too_many(request):
                response = render(request, "429.html", status=429)
                response.headers["Retry-After"] = "60"
            else:
                link = live_link(token)
                response = view(request, link, sheet_of(link), *args, **kwargs) if link else _gone(request)
            return _guarded(request, response, ancestors)

        return page

    return decorate


@shared()
def shared_page(request: HttpRequest, link: ShareLink, sheet: Sheet) -> HttpResponse:
    """The sheet, with what a chat needs to show the link as a sentence and a picture."""
    if request.method == "GET":
        count_opening(link)
    context = {"sheet": sheet, "kind": link.kind, "expires_at": link.expires_at, "url": _url(request)}
    return _page(request, "shares/page.html", context)


@xframe_options_exempt
@shared(ancestors="*")
def shared_embed(request: HttpRequest, link: ShareLink, sheet: Sheet) -> HttpResponse:
    """The answer and its pictures for a frame in another page."""
    if request.method == "GET":
        count_opening(link)
    return _page(request, "shares/embed.html", {"sheet": sheet})


@shared()
def shared_badge(request: HttpRequest, link: ShareLink, sheet: Sheet) -> HttpResponse:
    """The badge as SVG."""
    text = render_to_string("shares/badge.svg", {"badge": badge_of(sheet)})
    return _picture(request, text.encode(), "image/svg+xml")


@shared()
def shared_picture(request: HttpRequest, link: ShareLink, sheet: Sheet, form: str, plot_name: str = "") -> HttpResponse:
    """The first plot, or the named one, below its title and the answer; as SVG or PNG."""
    plot = plot_named(sheet, plot_name) if plot_name else next(iter(sheet.plots), None)
    if plot_name and plot is None:
        return _gone(request)
    text = render_to_string("shares/picture.svg", {"picture": picture_of(sheet, plot)})
    if form == "png":
        return _picture(request, png(text), "image/png")
    return _picture(request, text.encode(), "image/svg+xml")


@shared()
def shared_report(request: HttpRequest, link: ShareLink, sheet: Sheet, form: str) -> HttpResponse:
    """The sheet as Markdown, whose pictures are links to this share, its tables as CSV, or all of it as PDF."""
    url = _url(request, f"report.{form}")
    pictures = [(plot.title, f"{url}{plot.name}.svg") for plot in sheet.plots]
    known = f"shared:{link.token_digest}:{form}"  # frozen, and a PDF costs a second
    response: HttpResponse | None = cache.get(known)
    if response is None:
        response = sheet_file(sheet, form, name="report", url=url, pictures=pictures)
        cache.set(known, response, PICTURE_AGE_S)
    return response


@require_safe
def robots(_request: HttpRequest) -> HttpResponse:
    """Robots read nothing but shared pages: those say by themselves that they must not be indexed, if they are read."""
    return HttpResponse("User-agent: *\nAllow: /s/\nAllow: /static/\nDisallow: /\n", "text/plain; charset=utf-8")


def _url(request: HttpRequest, file: str = "") -> str:
    """The address of the shared page."""
    return request.build_absolute_uri(request.path.removesuffix(file))


def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    response = HttpResponse(render_to_string(template, context))
    response.headers["Cache-Control"] = "private, no-cache"
    return _unless_known(request, response)


def _picture(request: HttpRequest, content: bytes, content_type: str) -> HttpResponse:
    response = HttpResponse(content, content_type)
    response.headers["Cache-Control"] = f"public, max-age={PICTURE_AGE_S}"
    # A README on another site shows it; it holds nothing that its address does not already give.
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return _unless_known(request, response)


def _unless_known(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """304 when the asker has this very content already."""
    set_response_etag(response)
    found = get_conditional_response(request, etag=response.headers["ETag"], response=response)
    return found if isinstance(found, HttpResponse) else response


def _gone(request: HttpRequest) -> HttpResponse:
    response = render(request, "shares/gone.html", status=404)
    response.headers["Cache-Control"] = "no-store"
    return response


def _guarded(request: HttpRequest, response: HttpResponse, ancestors: str) -> HttpResponse:
    response.headers["Content-Security-Policy"] = POLICY.format(ancestors=ancestors)
    response.headers["X-Robots-Tag"] = "noindex, nofollow, noarchive"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _too_many(request: HttpRequest) -> bool:
    """Counted per address and minute, in the cache that all processes share."""
    key = f"shared:{get_adapter(request).get_client_ip(request)}:{_minute()}"
    if cache.add(key, 1, 120):
        return False
    try:
        return int(cache.incr(key)) > MOST_PER_MINUTE
    except ValueError:  # it went between the two
        return False


def _minute() -> int:
    return int(time.time() // 60)
