"""The cases: a tool's raw output beside the figures that a correct parser gets from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.properties import st

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """`expected` null = the text does not say. `tolerance` is absolute, per key."""

    name: str
    raw: bytes
    about: dict[str, object]

    @property
    def text(self) -> str:
        return self.raw.decode()

    @property
    def format(self) -> str:
        return str(self.about.get("format", ""))

    @property
    def command(self) -> str:
        return str(self.about.get("command", ""))

    @property
    def expected(self) -> dict[str, object]:
        return dict(self.about["expected"])  # type: ignore[call-overload, no-any-return]

    @property
    def tolerance(self) -> dict[str, float]:
        return dict(self.about.get("tolerance", {}))  # type: ignore[call-overload, no-any-return]


def cases(kind: str) -> list[Case]:
    """The cases in the folder of this kind; empty where there are none."""
    found = []
    for expected in sorted((CASES / kind).glob("*.expected.json")):
        name = expected.name.removesuffix(".expected.json")
        suffixes = (".txt", ".csv", ".json", ".jsonl", ".js", ".log", ".xml", ".nmon")
        raw = [p for p in expected.parent.glob(f"{name}.*") if p != expected and p.suffix in suffixes]
        raw = [p for p in raw if p.stem == name]
        if len(raw) == 1:
            found.append(Case(f"{kind}/{name}", raw[0].read_bytes(), json.loads(expected.read_text())))
    return found


@st.composite
def damaged(draw: st.DrawFn, texts: list[str]) -> str:
    """One of the texts with a few of the things that happen to files: cut, cut out, doubled, swapped, overwritten."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 200)))
        what = draw(st.sampled_from(["cut", "remove", "double", "insert", "digits", "lines"]))
        if what == "cut":
            text = text[:start]
        elif what == "remove":
            text = text[:start] + text[end:]
        elif what == "double":
            text = text[:end] + text[start:]
        elif what == "insert":
            text = text[:start] + draw(st.text(max_size=20)) + text[start:]
        elif what == "digits":
            text = (
                text[:start]
                + draw(st.sampled_from(["9" * 5000, "-1", "nan", "1e999", "٣", "0x1", ".", ":"]))
                + text[end:]
            )
        else:
            lines = text.splitlines(keepends=True)
            text = "".join(draw(st.permutations(lines[:30]))) + "".join(lines[30:])
    return text
