"""The undo journal: its restore.sh is run for real, twice, on trees of plain files in place of /proc/sys and /etc."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from agents.base.command import Command
from agents.events import StepIntended
from agents.remote.journal import restore_script, undo_text, write_command
from agents.steps.base.step import HostStep, StepContext
from agents.steps.file import FileStep
from agents.steps.sysctl import SysctlStep
from agents.steps.xml_edit.step import XmlEditStep

SERVER_XML = (
    '<Server port="8005">\n  <!-- kept -->\n  <Service name="a"><Connector port="8080"/></Service>\n</Server>\n'
)
NASTY = 'it\'s "quoted" $HOME `id` \\ 100%\n\ttab ünïcode\n'


def run(command: Command) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=300, check=False)


def unprivileged(text: str) -> str:
    """The script with `sudo -n` taken out: the tests run as whoever runs them."""
    return text.replace('SUDO="sudo -n"', "SUDO=")


@pytest.fixture
def context(tmp_path: Path) -> StepContext:
    (tmp_path / "instance/conf").mkdir(parents=True)
    (tmp_path / "instance/conf/server.xml").write_text(SERVER_XML)
    (tmp_path / "instance/app.conf").write_text(NASTY)
    (tmp_path / "proc/sys/vm").mkdir(parents=True)
    (tmp_path / "proc/sys/vm/swappiness").write_text("60\n")
    (tmp_path / "proc/sys/vm/dirty_ratio").write_text("20\n")
    (tmp_path / "proc/sys/vm/dirty_bytes").write_text("0\n")
    return StepContext(str(tmp_path / "instance"), sysfs=str(tmp_path / "sys"), procfs=str(tmp_path / "proc"))


STEPS: dict[int, HostStep] = {
    1: SysctlStep(values={"vm.swappiness": "10"}),
    2: FileStep(path="app.conf", content="changed\n"),
    3: FileStep(path="new.conf", content="made\n"),
    4: XmlEditStep.model_validate(
        {
            "path": "conf/server.xml",
            "edits": [{"op": "set", "select": "Service/Connector", "attributes": {"maxThreads": 400}}],
        }
    ),
}


def tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def applied(context: StepContext) -> dict[int, StepIntended]:
    """Each step probed, journalled and applied, as the runner does it."""
    entries = {}
    for index, step in STEPS.items():
        before = step.parse(run(step.probe(context)).stdout)
        undo = undo_text(step.revert(context, before))
        entries[index] = StepIntended(index, step.title(), before, undo)
        for command in step.apply(context, before):
            assert run(command).returncode == 0
    return entries


def test_restore_sh_puts_everything_back_and_may_run_again(context: StepContext, tmp_path: Path) -> None:
    before = tree(tmp_path)
    entries = applied(context)
    changed = tree(tmp_path)
    assert changed != before
    assert changed["proc/sys/vm/swappiness"] == "10\n"
    assert "maxThreads" in changed["instance/conf/server.xml"]
    for _ in range(2):
        done = subprocess.run(["sh"], input=unprivileged(restore_script(entries)).encode(), timeout=300, check=False)
        assert done.returncode == 0
        assert tree(tmp_path) == before


def test_restore_sh_goes_on_after_a_failure_and_tells(context: StepContext, tmp_path: Path) -> None:
    entries = applied(context)
    (tmp_path / "instance/new.conf").unlink()
    (tmp_path / "instance/new.conf").mkdir()
    done = subprocess.run(
        ["sh"], input=unprivileged(restore_script(entries)).encode(), capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 1
    assert b"failed: step 3" in done.stderr
    assert (tmp_path / "instance/app.conf").read_text() == NASTY
    assert (tmp_path / "proc/sys/vm/swappiness").read_text() == "60\n"


def test_the_last_change_is_undone_first() -> None:
    entries = {i: StepIntended(i, f"step\n{i}", {}, (f"echo {i}",)) for i in (0, 1, 10, 2)}
    done = subprocess.run(["sh"], input=restore_script(entries).encode(), capture_output=True, timeout=300, check=True)
    assert done.stdout.split() == [b"10", b"2", b"1", b"0"]


def test_an_entry_is_written_whole_with_the_script_of_all_entries(tmp_path: Path) -> None:
    journal = tmp_path / "run/journal"
    entries = {1: StepIntended(1, "first", {"a": "1\n2", "b": None}, ("true",))}
    assert run(write_command(str(journal), entries, 1)).returncode == 0
    entries[2] = StepIntended(2, "second", {}, ("echo 'x'",))
    for _ in range(2):
        assert run(write_command(str(journal), entries, 2)).returncode == 0
    assert sorted(path.name for path in journal.iterdir()) == ["0001.json", "0002.json", "restore.sh"]
    assert json.loads((journal / "0001.json").read_text()) == {
        "index": 1,
        "title": "first",
        "before": {"a": "1\n2", "b": None},
        "undo": ["true"],
    }
    assert (journal / "restore.sh").read_text() == restore_script(entries)
    assert (journal / "restore.sh").stat().st_mode & 0o777 == 0o700
    assert (journal / "0001.json").stat().st_mode & 0o077 == 0


def test_half_of_an_entry_replaces_nothing(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    entries = {1: StepIntended(1, "first", {}, ("true",))}
    run(write_command(str(journal), entries, 1))
    good = (journal / "restore.sh").read_text()
    entries[2] = StepIntended(2, "second", {}, ("false",))
    whole = write_command(str(journal), entries, 2)
    cut = Command(whole.argv, stdin=whole.stdin[:-7])
    assert run(cut).returncode != 0
    assert (journal / "restore.sh").read_text() == good
    assert not (journal / "0002.json").exists()


@pytest.mark.parametrize(
    "command, line",
    [
        (Command(("echo", "a b", "it's")), "echo 'a b' 'it'\"'\"'s'"),
        (Command(("tee", "/x"), privileged=True), "$SUDO tee /x"),
        (Command(("cat",), stdin=b"\x00\xff", privileged=True), "printf %s 'AP8=' | base64 -d | $SUDO cat"),
    ],
)
def test_commands_become_shell_that_a_person_can_run(command: Command, line: str) -> None:
    assert undo_text([command]) == (line,)
