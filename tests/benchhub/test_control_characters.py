"""What a terminal or a browser would obey is shown as a picture, wherever a text of a host comes out."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import Client

from benchhub.control_characters import shown, without_controls
from clients.python.benchhub_client.connection import shown as ci_shown
from experiments.models import Host, Member
from experiments.registry.hosts.inventory import check_state
from tests.experiments.conftest import admin, make_member, ready_host, team

__all__ = ["admin", "make_member", "team"]  # fixtures

NASTY = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x00 fine\n\tyes"
PLAIN = "␛]0;owned␇␛[2J\ufffd31m␡␀ fine\n\tyes"


def test_raw_characters_become_pictures_and_ordinary_text_stays() -> None:
    assert without_controls(NASTY.encode()).decode() == PLAIN
    ordinary = "Zeit µs ‑ 1 °C, ß\r\n\t“x” \\u001b in a text".encode()
    assert without_controls(ordinary) == ordinary


@pytest.mark.parametrize("ascii_only", [True, False])
def test_what_json_escapes_is_found_and_its_other_texts_stay(ascii_only: bool) -> None:
    told = {"said": NASTY, "a\x1bb": [r"\u001b", "\\", "\\\x1b", "\\\\\x07", "\b\f", 'a"b', "ä"]}
    text = json.dumps(told, ensure_ascii=ascii_only).encode()
    read = json.loads(without_controls(text, is_json=True))
    assert read == {"said": PLAIN, "a␛b": [r"\u001b", "\\", "\\␛", "\\\\␇", "␈␌", 'a"b', "ä"]}


def test_streams_are_shown_so_and_files_stay_what_they_are() -> None:
    stream = shown(StreamingHttpResponse([b"data: \x1b\n", b"\x07"], content_type="text/event-stream"))
    assert isinstance(stream, StreamingHttpResponse)
    assert b"".join(stream).decode() == "data: ␛\n␇"
    file = HttpResponse(b"\x1b", content_type="text/plain", headers={"Content-Disposition": "attachment"})
    picture = HttpResponse(b"\x1b", content_type="image/png")
    for kept in (file, picture):
        shown(kept)
        assert kept.content == b"\x1b"


async def test_asynchronous_streams_too() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"\x1b"

    stream = shown(StreamingHttpResponse(pieces(), content_type="text/html"))
    assert isinstance(stream, StreamingHttpResponse)
    assert [piece async for piece in stream] == ["␛".encode()]


@pytest.mark.django_db
def test_what_a_host_said_at_its_check_reaches_neither_page_nor_api_raw(admin: Member, client: Client) -> None:
    host = ready_host(admin, "sut-1")
    Host.objects.filter(pk=host.pk).update(last_check=check_state("failed", f"It says {NASTY}"))
    client.force_login(admin.user)
    for address in (f"/t/{admin.team.slug}/hosts/{host.pk}/", f"/t/{admin.team.slug}/hosts/"):
        answer = client.get(address, follow=True)
        assert answer.status_code == 200, address
        raw = [one for one in (b"\x1b", b"\x07", b"\\u001b", b"\\u0007") if one in answer.content]
        assert not raw, address


def test_the_client_for_pipelines_prints_none_either() -> None:
    assert ci_shown({"a\x1b": [NASTY, 1, None]}) == {"a\ufffd": [re.sub("[␀-␡]", "\ufffd", PLAIN), 1, None]}
