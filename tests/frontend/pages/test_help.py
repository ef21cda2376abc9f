"""The documentation inside the product: what of Markdown comes through, and that all of it can be reached."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.urls import reverse

from experiments.models import Member
from experiments.telling.find.documentation import INDEX, anchor, search, topics
from frontend.pages.help.contents import help_page, render


class Page(HTMLParser):
    """The ids, links and tags of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif name == "href":
                self.links.append(value or "")
            else:
                assert not name.startswith("on")


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("a <script>alert(1)</script> b", "<p>a &lt;script&gt;alert(1)&lt;/script&gt; b</p>"),
        ("<div onclick=x>", "<p>&lt;div onclick=x&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](verdicts.md#overload-arithmetic)", '<p><a href="../verdicts/#overload-arithmetic">x</a></p>'),
        ("[x](README.md)", '<p><a href="../">x</a></p>'),
        ("[x](#here)", '<p><a href="#here">x</a></p>'),
        ("[the *licence*](../LICENSE) b", "<p>the <em>licence</em> b</p>"),
        ("[x](../README.md)", "<p>x</p>"),
        ("[x](works/1-tomcat-baseline.md)", '<p><a href="../1-tomcat-baseline/">x</a></p>'),
        ("[x](https://example.com/)", '<p><a href="https://example.com/">x</a></p>'),
        ("![a picture](img/run.png) b", "<p> b</p>"),
        (
            "| a | b |\n| :-- | --: |",
            '<table>\n<thead>\n<tr>\n<th>a</th>\n<th class="num">b</th>\n</tr>\n</thead>\n</table>',
        ),
        ("## `gc` pauses", '<h2 id="gc-pauses"><code>gc</code> pauses</h2>'),
        ("### `connect_errors`", '<h3 id="connect_errors"><code>connect_errors</code></h3>'),
    ],
)
def test_what_of_markdown_comes_through(markdown: str, html: str) -> None:
    assert render(markdown, "jmeter.md").html.strip() == html


def test_a_page_in_a_folder_links_to_the_pages_above_it() -> None:
    html = render("[x](../scaling.md#search) [y](1-tomcat-baseline.md)", "works/4-cpu-scaling.md").html
    assert 'href="../scaling/#search"' in html
    assert 'href="../1-tomcat-baseline/"' in html


def test_tables_and_code_are_kept() -> None:
    page = Page(render("| a | b |\n| --- | --- |\n| `1` | 2 |\n\n    manage.py rejudge\n", "jmeter.md").html)
    assert {"table", "td", "pre", "code"} <= page.tags


@pytest.mark.parametrize("topic", sorted({*topics(), INDEX}))
def test_every_link_inside_the_documentation_leads_somewhere(topic: str) -> None:
    page = help_page(topic)
    assert page.title
    parsed = Page(page.html)
    assert not parsed.tags & {"script", "style", "iframe", "object", "img"}
    for link in parsed.links:
        if link.startswith("http"):
            continue
        match = re.fullmatch(r"(?:\.\./)?(?:([A-Za-z0-9-]+)/)?(?:#(.+))?", link)
        assert match, link
        other = match[1] or (topic if link.startswith("#") else INDEX)
        assert other in topics() | {INDEX}, link
        if match[2]:
            assert match[2] in Page(help_page(other).html).ids, link


def test_an_anchor_is_that_of_code_forges() -> None:
    assert anchor("Validity: does this run count?") == "validity-does-this-run-count"


@pytest.mark.django_db
def test_a_member_reads_the_help(admin: Member, client: Client) -> None:
    client.force_login(admin.user)
    answer = client.get(reverse("help", args=[admin.team.slug, "validity"]))
    assert answer.status_code == 200
    assert 'id="steady_state"' in answer.content.decode()
    assert client.get(reverse("help_index", args=[admin.team.slug])).status_code == 200
    assert client.get(reverse("help", args=[admin.team.slug, "no-such-page"])).status_code == 404
    index = client.get(reverse("help", args=[admin.team.slug, INDEX]))  # its links are relative to the other address
    assert index.headers["Location"] == reverse("help_index", args=[admin.team.slug])


def test_the_help_is_searched_by_section_with_what_stands_around_the_words(browser: Client) -> None:
    place = reverse("help_index", args=["perf"])
    page = browser.get(place, {"q": "skips unchanged DAYLIGHT"})
    assert page.context["hits"] == []
    (first, *_) = search("daylight saving")
    assert (first.topic, first.anchor) == ("schedules", "when")
    assert "daylight" in first.excerpt.lower()
    shown = browser.get(place, {"q": "daylight saving"}).content.decode()
    assert f'href="{reverse("help", args=["perf", "schedules"])}#when"' in shown
    assert search("") == []
    assert "&lt;b&gt;" in browser.get(place, {"q": "<b>"}).content.decode()


def test_a_section_whose_heading_has_the_words_comes_first() -> None:
    assert search("many comparisons")[0].heading == "Many comparisons"
    for hit in search("verdict"):
        assert not hit.anchor or f'id="{hit.anchor}"' in help_page(hit.topic).html
