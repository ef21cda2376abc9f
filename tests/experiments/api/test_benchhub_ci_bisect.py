"""benchhub-ci bisect: what it asks for, how it goes on, and how it ends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clients.benchhub_ci.bisecting import commits, from_file, version
from clients.python.benchhub_client.connection import Trouble
from experiments.asking.bisections.live import BISECTIONS
from experiments.models import Bisection, Member, Recipe
from experiments.registry.documents.versions import save_version
from tests.experiments.api.ci_client import NAMES, Ci
from tests.experiments.asking.test_bisections import CHECKOUT, COMMITS, JITTER, play, slow_from
from tests.experiments.conftest import RECIPE

WANTED = (NAMES[0], "--recipe=at a commit", *NAMES[2:], "--parameter=commit", "--good=c0", "--bad=c5")


@pytest.fixture
def candidates(admin: Member, stock: dict[str, Any], tmp_path: Path) -> str:
    save_version(admin, Recipe, "at a commit", CHECKOUT)
    path = tmp_path / "commits"
    path.write_text("\n".join(COMMITS))
    return f"--candidates={path}"


def level(_label: str, place: int) -> float:
    return 1000.0 * JITTER[place % len(JITTER)]


def noisy(_label: str, place: int) -> float:
    return 1000.0 * (1 + 0.2 * ((place * 7919) % 13 - 6) / 6)


def no_c3(label: str, place: int) -> float | None:
    return None if label == "c3" else slow_from("c3", COMMITS)(label, place)


def test_a_bisection_is_started_once_and_names_the_first_bad_one(ci: Ci, candidates: str, tmp_path: Path) -> None:
    kept, said, comment = (tmp_path / name for name in ("state.json", "answer.json", "comment.md"))
    wanted = (
        "bisect",
        *WANTED,
        candidates,
        "--label",
        "build=7",
        "--margin",
        "5",
        "--max-pairs",
        "6",
        "--state",
        str(kept),
    )
    starts = [ci(*wanted, "--no-wait") for _ in range(2)]
    bisection = Bisection.objects.get()
    assert [done.stdout for done in starts] == [f"bisection:{bisection.pk}\n"] * 2, starts[0].stderr
    assert "6 candidates from c0 to c5, at most 4 steps" in starts[0].stderr
    assert (bisection.name, bisection.margin_ratio, bisection.max_blocks) == ("at a commit: c0 to c5", 0.05, 6)
    assert bisection.labels == {"build": "7"}
    unfinished = ci(*wanted, "--timeout", "0")
    assert (unfinished.returncode, "c5 must be worse than c0 at all; at most 4 steps" in unfinished.stderr) == (3, True)
    assert "Step 1 compares c5 with c0: 0 of 10 runs are finished." in unfinished.stderr

    play(bisection, slow_from("c4", COMMITS))
    done = ci(*wanted, "--json", str(said), "--comment", str(comment))
    answer = json.loads(said.read_text())
    assert (done.returncode, answer["outcome"], answer["first_bad"]) == (0, "found", "c4"), done.stderr
    assert answer["ci95_low_pct"] <= answer["change_pct"] <= answer["ci95_high_pct"] < 0
    assert done.stdout.startswith("### 🎯 first bad one c4: [at a commit: c0 to c5](http://")
    assert done.stdout.strip() == comment.read_text().strip() == answer["markdown"].strip()
    assert "| 4 | c4 | worse | " in done.stdout
    assert "c4 is the first bad one. Throughput: c4 is slower than c0 by " in done.stderr
    assert ci("wait", f"bisection:{bisection.pk}").stdout == f"bisection:{bisection.pk}\n"
    assert "has its metric and its margin" in ci("gate", f"bisection:{bisection.pk}", "--margin", "5").stderr


@pytest.mark.parametrize(
    "server, status, title",
    [
        (level, 1, "✅ nothing to find"),
        (noisy, 2, "⚠️ unclear"),
        (no_c3, 2, "⚠️ unclear"),
        (None, 3, "💥 error"),
    ],
    ids=["not worse", "too much noise", "one that does not build", "cancelled"],
)
def test_what_names_no_first_bad_one_has_a_status_of_its_own(
    ci: Ci, candidates: str, admin: Member, server: Callable[[str, int], float | None] | None, status: int, title: str
) -> None:
    assert ci("bisect", *WANTED, candidates, "--max-pairs", "6", "--no-wait").returncode == 0
    bisection = Bisection.objects.get()
    if server is None:
        BISECTIONS.cancel(admin, bisection)
    else:
        play(bisection, server)
    done = ci("gate", f"bisection:{bisection.pk}")
    assert (done.returncode, done.stdout.startswith(f"### {title}: ")) == (status, True), done.stdout
    assert ("Step 3, c3: Run #" in done.stderr) == (server is no_c3), done.stderr


def test_versions_of_a_recipe_are_asked_for_by_their_numbers(ci: Ci, admin: Member) -> None:
    save_version(admin, Recipe, "limits", {**RECIPE, "description": "second"})
    assert ci("bisect", *NAMES, "--good", "v1", "--bad", "2", "--no-wait").returncode == 0
    assert Bisection.objects.get().candidates == ["1", "2"]
    for more, said in (
        (("--good", "1", "--bad", "9"), "field: bad_version"),
        (("--good", "1", "--bad", "4f2c9d1"), "--parameter commit"),
        (("--good", "1", "--bad", "2", "--candidates", "-"), "needs --parameter"),
        (("--good", "1", "--bad", "2", "--max-pairs", "50"), "field: max_blocks"),
    ):
        refused = ci("bisect", *NAMES, *more)
        assert (refused.returncode, said in refused.stderr) == (3, True), refused.stderr
    lacking = ci("bisect", "--good", "1", "--bad", "2", *NAMES[:3])
    assert (lacking.returncode, "needs --sut --driver as well" in lacking.stderr) == (3, True)


@pytest.mark.parametrize(
    "lines, found",
    [
        ("", ["good", "bad"]),
        ("one\ntwo\n", ["good", "one", "two", "bad"]),
        ("old\ngood\none\nbad\nnewer\n", ["good", "one", "bad"]),
        ("good\r\n\r\none\r\n", ["good", "one", "bad"]),
        ("one\nbad\nnewer", ["good", "one", "bad"]),
        ("bad\none\ngood", None),
    ],
)
def test_the_lines_of_a_file_become_candidates(lines: str, found: list[str] | None, tmp_path: Path) -> None:
    path = tmp_path / "candidates"
    path.write_text(lines)
    if found is None:
        with pytest.raises(Trouble, match="bad comes before good"):
            from_file(str(path), "good", "bad")
    else:
        assert from_file(str(path), "good", "bad") == found


@pytest.mark.parametrize("text", ["", "v", "-1", "²", "abc"])
def test_what_is_no_version_of_a_recipe_is_said(text: str) -> None:
    assert version("v12", "--good") == 12
    with pytest.raises(Trouble, match="--good is a version of the recipe"):
        version(text, "--good")


def test_git_lists_the_commits_from_the_good_one_to_the_bad_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merged branch counts as its merge: the candidates are one line."""
    monkeypatch.chdir(tmp_path)

    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@localhost.invalid", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *identity, *words], capture_output=True, text=True, check=True).stdout.strip()

    def commit(text: str) -> str:
        git("commit", "--quiet", "--allow-empty", "-m", text)
        return git("rev-parse", "HEAD")

    git("init", "--quiet", "--initial-branch=main")
    commit("before")
    good = commit("good")
    git("tag", "v1")
    one = commit("one")
    git("checkout", "--quiet", "-b", "side", good)
    commit("aside")
    git("checkout", "--quiet", "main")
    git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
    merge = git("rev-parse", "HEAD")
    bad = commit("bad")
    assert commits("v1", "HEAD") == [good, one, merge, bad]
    for wrong, said in ((("HEAD", "v1"), "no commit that HEAD does not have"), (("v1", "nope"), "git knows no commit")):
        with pytest.raises(Trouble, match=said):
            commits(*wrong)
    with pytest.raises(Trouble, match="git knows no commit"):
        commits("--all", "HEAD")
