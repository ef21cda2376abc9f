"""bin/lab: what it lists and refuses before it touches anything, and the programs that it puts onto hosts."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from experiments.asking.library.catalogue import names, template, tuning
from lab.equip import Programs, Spot, equip
from lab.shell import LabError

LAB = Path(__file__).parent.parent / "bin" / "lab"


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(LAB), *arguments], capture_output=True, text=True, check=False, timeout=300)


def test_the_list_has_every_experiment_with_its_question() -> None:
    listed = lab("--list")
    assert listed.returncode == 0
    found = dict(line.split(maxsplit=1) for line in listed.stdout.splitlines())
    assert {name: question.strip() for name, question in found.items()} == {
        **{name: template(name).question for name in names("experiments")},
        **{name: tuning(name).question for name in names("tunings")},
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "usage: bin/lab NAME"),
        (("no-such-thing",), "the library has no experiment no-such-thing"),
        (("../experiments/tomcat-baseline",), "the library has no experiment"),
        (("--fast", "tomcat-baseline"), "unknown option: --fast"),
        (("tomcat-baseline", "--port"), "--port needs a value"),
    ],
)
def test_what_it_cannot_do_is_said_at_once(arguments: tuple[str, ...], words: str) -> None:
    refused = lab(*arguments)
    assert refused.returncode != 0
    assert words in refused.stderr


@pytest.fixture
def spots(tmp_path: Path) -> tuple[Spot, Spot]:
    for name in ("sut", "driver"):
        (tmp_path / name).mkdir()
    return Spot("sut", tmp_path / "sut", "/root"), Spot("driver", tmp_path / "driver", "/root")


def test_hosts_get_what_the_settings_point_at(tmp_path: Path, spots: tuple[Spot, Spot]) -> None:
    liberty, war, jmeter = tmp_path / "liberty.zip", tmp_path / "rest.war", tmp_path / "jmeter-5.6.3"
    with zipfile.ZipFile(liberty, "w") as archive:
        archive.writestr("wlp/bin/server", "#!/bin/sh\n")
        archive.writestr("wlp/bin/server.bat", "")
    war.write_bytes(b"war")
    (jmeter / "bin").mkdir(parents=True)
    (jmeter / "bin" / "jmeter").write_text("#!/bin/sh\n")
    sut, driver = spots
    programs = Programs(liberty=liberty, rest_war=war, jmeter=jmeter)
    for _ in range(2):
        values = equip([sut], driver, {"liberty_home", "rest_war", "jmeter_home", "users"}, programs)
        assert values == {
            "liberty_home": "/root/wlp",
            "rest_war": "/root/rest.war",
            "jmeter_home": "/root/jmeter",
        }
    assert (sut.outside / "wlp/bin/server").stat().st_mode & 0o111
    assert (driver.outside / "jmeter/bin/jmeter").is_file()
    assert sorted(path.name for path in sut.outside.iterdir()) == ["rest.war", "wlp"]


def test_a_host_gets_a_project_of_two_commits_that_differ_in_what_they_answer(spots: tuple[Spot, Spot]) -> None:
    sut, driver = spots
    for _ in range(2):
        programs = Programs(node=LAB.parent.parent / "experiments/asking/library/node")
        assert equip([sut], driver, {"repository"}, programs) == {"repository": "/root/project"}
    git = ("git", "-C", str(sut.outside / "project"), "-c", "safe.directory=*")
    changed = subprocess.run([*git, "diff", "--numstat", "HEAD~1"], check=True, capture_output=True, text=True)
    assert changed.stdout == "1\t1\tserver.js\n"


def test_a_program_that_is_not_here_is_named(spots: tuple[Spot, Spot]) -> None:
    sut, driver = spots
    with pytest.raises(LabError, match="There is no JMeter yet"):
        equip([sut], driver, {"jmeter_home"}, Programs())
