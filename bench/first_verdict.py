"""What a newcomer sees on the page of the demo's experiment: its sentences, with the time since this began."""

from __future__ import annotations

import argparse
import sys
import time
from typing import cast
from urllib.parse import urljoin

import requests
from lxml import etree, html

LOOK_EVERY_S = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", help="the experiment's address, as bin/demo --status shows it")
    parser.add_argument("--user", default="demo")
    parser.add_argument("--password", default="benchhub-demo")
    parser.add_argument("--within", type=float, default=1800.0, metavar="SECONDS", help="exit status 1 when it is over")
    given = parser.parse_args()
    begin = time.monotonic()
    session = requests.Session()
    sign_in(session, given.page, given.user, given.password)
    told = ""
    while time.monotonic() - begin < given.within:
        answer = session.get(given.page, timeout=300)
        answer.raise_for_status()
        progress, verdicts = read(answer.text)
        if " | ".join((progress, *verdicts)) != told:
            told = " | ".join((progress, *verdicts))
            print(f"{time.monotonic() - begin:7.1f} s  {told}", flush=True)
        if verdicts and is_over(progress):
            return
        time.sleep(LOOK_EVERY_S)
    sys.exit("no verdict in that time")


def sign_in(session: requests.Session, page: str, user: str, password: str) -> None:
    """The way of a browser: the page leads to the form, and the form back to the page."""
    form_page = session.get(page, timeout=300)
    form = next(form for form in _page(form_page.text).forms if "password" in form.fields)
    fields = {**dict(form.form_values()), "login": user, "password": password}
    answer = session.post(
        urljoin(form_page.url, form.action or ""), fields, headers={"Referer": form_page.url}, timeout=300
    )
    answer.raise_for_status()
    if "password" in answer.text and any("password" in form.fields for form in _page(answer.text).forms):
        sys.exit(f"{user} cannot sign in with this password")


def read(page: str) -> tuple[str, list[str]]:
    """How far the experiment is, and its verdicts with their badges."""
    tree = _page(page)
    told = [bar.getprevious() for bar in tree.iter("progress") if " of " in _text(bar)]
    progress = next((_text(one) for one in told if one is not None), "")
    cards = [card for card in tree.iter("section") if "Verdict" in map(_text, card.iter("h2"))]
    return progress, [_text(item) for card in cards for item in card.iter("li")]


def is_over(progress: str) -> bool:
    """Whether all runs have ended: "9 of 9 runs finished"."""
    words = progress.split()
    return len(words) > 2 and words[0] == words[2]


def _page(text: str) -> html.HtmlElement:
    return cast(html.HtmlElement, html.fromstring(text))


def _text(element: etree._Element) -> str:
    return " ".join(" ".join(map(str, element.itertext())).split())


if __name__ == "__main__":
    main()
