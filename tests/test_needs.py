"""Why tests are skipped is counted, and each reason says what would make them run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs

TESTS = Path(__file__).parent


def test_reasons_are_counted_and_the_most_frequent_one_comes_first() -> None:
    root, wrk = "needs root (the lab): run it as root or with sudo", "needs wrk: apt-get install wrk"
    assert needs.summary([f"Skipped: {wrk}", root, root]) == [f"     2  {root}", f"     1  {wrk}"]
    assert needs.summary([]) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("h2load", "needs h2load: apt-get install nghttp2-client"),
        ("siege", "needs siege: apt-get install siege"),
        ("oha", "needs oha: put it on the PATH (docs/drivers.md says where it is from)"),
    ],
)
def test_the_reason_of_a_skip_names_what_is_missing_and_where_to_get_it(
    name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_args, **_more: None)
    with pytest.raises(pytest.skip.Exception, match=re.escape(reason)):
        needs.require_program(name)


def test_every_skip_has_such_a_reason() -> None:
    """No other module skips tests itself."""
    found = []
    for path in TESTS.rglob("*.py"):
        names = {"skip", "skipif", "importorskip"} if path != TESTS / "needs.py" else set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in names and "pytest" in ast.unparse(node):
                found.append(f"{path.relative_to(TESTS)}:{node.lineno}")
    assert [place for place in found if not place.startswith("test_needs.py")] == []


def test_a_session_ends_with_the_reasons_of_its_skips(tmp_path: Path) -> None:
    (tmp_path / "test_skipped.py").write_text(
        "import pytest\nfrom tests import needs\n\n\n@pytest.mark.parametrize('n', range(3))\ndef test_it(n):\n"
        "    needs.require(n == 2, 'a moon', 'wait')\n"
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", "--rootdir"]
    argv += [str(tmp_path), "-c", str(TESTS.parent / "pyproject.toml"), str(tmp_path)]
    done = subprocess.run(argv, cwd=TESTS.parent, capture_output=True, text=True, check=False, timeout=300)
    assert "2 skipped, for these reasons:\n     2  needs a moon: wait\n" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
