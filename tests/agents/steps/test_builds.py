"""Builds of real repositories with the tools of this machine."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.steps.base.step import StepContext
from agents.steps.build.scripts import COMMANDS
from agents.steps.build.step import KEPT_BUILDS, BuildStep
from tests import needs
from tests.agents.steps.step_shell import revert, state

MAKEFILE = "all:\n\tmkdir -p out\n\tcp app.txt out/app-1.txt\n\techo made >>$(COUNT)\n"


@dataclass(frozen=True)
class Project:
    """A repository, and a place whose lines count the builds."""

    at: Path
    count: Path

    def git(self, *words: str) -> str:
        own = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-C", str(self.at))
        return subprocess.run([*own, *words], check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, **files: str) -> str:
        """The SHA of a new commit with these files; __ in a name is a dot."""
        for name, text in files.items():
            (self.at / name.replace("__", ".")).write_text(text)
        self.git("add", ".")
        self.git("commit", "-qm", "a change")
        return self.git("rev-parse", "HEAD")

    @property
    def builds(self) -> int:
        return len(self.count.read_text().splitlines()) if self.count.exists() else 0

    def step(self, commit: str, **more: Any) -> BuildStep:
        made = {"artefact": "out/*.txt", "to": "app.txt", "arguments": [f"COUNT={self.count}"], "tool": "make", **more}
        return BuildStep.model_validate({"repository": str(self.at), "commit": commit, **made})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    needs.require_program("git", "make")
    home, at = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    at.mkdir()
    monkeypatch.setenv("HOME", str(home))
    made = Project(at, tmp_path / "count")
    made.git("init", "-q", "-b", "main")
    return made


@pytest.fixture
def instance(tmp_path: Path) -> Callable[[], StepContext]:
    """A new instance directory with each call."""
    numbers = iter(range(100))

    def made() -> StepContext:
        path = tmp_path / f"run-{next(numbers)}" / "instance"
        path.mkdir(parents=True)
        return StepContext(str(path))

    return made


Instance = Callable[[], StepContext]


def built(step: BuildStep, context: StepContext) -> str:
    """Builds it; what it said on standard error when it failed."""
    (command,) = step.apply(context, state(step, context))
    done = subprocess.run(command.argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 or done.stderr
    return done.stderr if done.returncode else ""


def test_a_commit_is_built_once_and_then_taken_from_what_is_kept(project: Project, instance: Instance) -> None:
    one = project.commit(Makefile=MAKEFILE, app__txt="one")
    two = project.commit(app__txt="two")
    for commit, text in ((one, "one"), (two, "two"), (one, "one")):
        step, context = project.step(commit), instance()
        before = state(step, context)
        assert built(step, context) == ""
        assert Path(context.path("app.txt")).read_text() == text
        after = state(step, context)
        (outcome,) = step.outcomes(before, after)
        assert (outcome.effective, outcome.result) == (commit, "applied")
        assert step.settings(after)["build.commit"] == commit
        revert(step, context, before)
        assert list(Path(context.instance).iterdir()) == []
    assert project.builds == 2
    assert "taken from the cache, built in" in outcome.detail


def test_a_branch_is_what_it_is_now_and_a_tag_is_a_commit(project: Project, instance: Instance) -> None:
    first = project.commit(Makefile=MAKEFILE, app__txt="one")
    project.git("tag", "v1")
    found = []
    for name in ("main", "v1", first[:10]):
        context = instance()
        assert built(project.step(name), context) == ""
        found.append(state(project.step(name), context)["commit"])
    second = project.commit(app__txt="two")
    context = instance()
    assert built(project.step("main"), context) == ""
    assert [*found, state(project.step("main"), context)["commit"]] == [first, first, first, second]


def test_head_is_the_newest_of_the_repositorys_own_branch_and_a_number_goes_back_from_it(
    project: Project, instance: Instance
) -> None:
    first = project.commit(Makefile=MAKEFILE, app__txt="one")
    second = project.commit(app__txt="two")
    third = project.commit(app__txt="three")
    found = []
    for name in ("HEAD", "HEAD~1", "main~2"):
        context = instance()
        assert built(project.step(name), context) == ""
        found.append(state(project.step(name), context)["commit"])
    assert found == [third, second, first]
    project.git("switch", "-qc", "other", first)
    context = instance()
    assert built(project.step("HEAD"), context) == ""
    assert state(project.step("HEAD"), context)["commit"] == first, "not what was checked out last"
    assert "has no commit" in built(project.step("HEAD~9"), instance())


def test_what_makes_the_build_another_one_is_built_anew(project: Project, instance: Instance) -> None:
    commit = project.commit(Makefile=MAKEFILE, app__txt="one")
    assert built(project.step(commit), instance()) == ""
    assert built(project.step(commit, arguments=[f"COUNT={project.count}", "MORE=1"]), instance()) == ""
    assert built(project.step(commit, artefact="app.txt"), instance()) == ""
    assert project.builds == 3


@pytest.mark.parametrize(
    ("files", "more", "words"),
    [
        ({"Makefile": "all:\n\techo the reason; false\n"}, {}, "the reason"),
        ({"Makefile": MAKEFILE, "app__txt": "a"}, {"artefact": "none/*.jar"}, "made no none/*.jar"),
        ({"Makefile": MAKEFILE, "app__txt": "a"}, {"artefact": "*"}, "files like *, not one"),
        ({"Makefile": MAKEFILE}, {"commit": "no-such-branch"}, "has no commit, branch or tag no-such-branch"),
        ({"Makefile": MAKEFILE}, {"repository": "/nowhere/at/all"}, "git cannot fetch /nowhere/at/all"),
    ],
)
def test_a_build_that_fails_says_why_and_leaves_nothing_that_counts_as_built(
    project: Project, instance: Instance, files: dict[str, str], more: dict[str, str], words: str
) -> None:
    commit = project.commit(**files)
    context = instance()
    given = {"to": "app", "artefact": "out/*.txt", **more}
    step = project.step(given.pop("commit", commit)).model_copy(update=given)
    assert words in built(step, context)
    assert {o.result for o in step.outcomes(state(step, context), state(step, context))} == {"refused"}
    assert words in built(step, context), "a second time it fails as well"


def test_only_the_builds_that_were_used_last_are_kept(
    project: Project, instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KEPT_BUILDS == 20
    monkeypatch.setattr("agents.steps.build.step.KEPT_BUILDS", 2)
    commits = [project.commit(Makefile=MAKEFILE, app__txt=str(number)) for number in range(3)]
    for commit in commits:
        assert built(project.step(commit), instance()) == ""
    kept = [path.name[:40] for path in (tmp_path / "home/.benchhub/builds").glob("*/built/*")]
    assert sorted(kept) == sorted(commits[1:])


def test_npm_builds_a_directory(project: Project, instance: Instance) -> None:
    needs.require_program("npm")
    build = "mkdir -p dist && echo built > dist/index.html"
    commit = project.commit(package__json=f'{{"name": "a", "version": "1.0.0", "scripts": {{"build": "{build}"}}}}')
    context = instance()
    step = project.step(commit, tool="npm", artefact="dist", to="site", arguments=[])
    assert built(step, context) == ""
    assert Path(context.path("site/index.html")).read_text() == "built\n"
    context = instance()
    assert built(step.model_copy(update={"artefact": ".", "to": "app"}), context) == ""
    assert sorted(os.listdir(context.path("app"))) == ["dist", "package-lock.json", "package.json"], "all but .git"


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>a</groupId><artifactId>shop</artifactId><version>1</version>
<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target></properties></project>"""
JAVA = 'class Shop { public static void main(String[] args) { System.out.println("built"); } }'


def test_maven_builds_a_jar(project: Project, instance: Instance) -> None:
    needs.require_program("mvn", "javac")
    kept = Path(pwd.getpwuid(os.geteuid()).pw_dir, ".m2/repository")
    (project.at / "src/main/java").mkdir(parents=True)
    (project.at / "src/main/java/Shop.java").write_text(JAVA)
    commit = project.commit(pom__xml=POM)
    context = instance()
    arguments = ["--offline", f"-Dmaven.repo.local={kept}"]
    step = project.step(commit, tool="maven", artefact="target/*.jar", to="app.jar", arguments=arguments)
    said = built(step, context)
    needs.require("PluginResolutionException" not in said, "plugins of Maven", f"mvn package in {project.at}")
    assert said == ""
    ran = subprocess.run(["java", "-cp", context.path("app.jar"), "Shop"], check=True, capture_output=True, timeout=60)
    assert ran.stdout == b"built\n"


def test_cargo_builds_a_program(project: Project, instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    needs.require_program("cargo", "cc")
    monkeypatch.setenv("RUSTUP_HOME", os.environ.get("RUSTUP_HOME") or f"{pwd.getpwuid(os.geteuid()).pw_dir}/.rustup")
    (project.at / "src").mkdir()
    (project.at / "src/main.rs").write_text('fn main() { println!("built"); }\n')
    commit = project.commit(Cargo__toml='[package]\nname = "shop"\nversion = "1.0.0"\nedition = "2021"\n')
    context = instance()
    step = project.step(commit, tool="cargo", artefact="target/release/shop", to="", arguments=["--offline"])
    needs.require("rustup" not in (said := built(step, context)), "a toolchain of rust", "rustup default stable")
    assert said == ""
    assert subprocess.run([context.path("shop")], capture_output=True, check=True).stdout == b"built\n"


@pytest.mark.parametrize("tool", sorted(COMMANDS))
def test_what_each_tool_runs_is_shell_that_can_be_read(tool: str) -> None:
    subprocess.run(["sh", "-n", "-c", COMMANDS[tool]], check=True, timeout=60)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"repository": "ext::sh -c id"}, "repository"),
        ({"repository": "--upload-pack=id"}, "repository"),
        ({"commit": "--orphan"}, "commit"),
        ({"artefact": "../x"}, "no path inside"),
        ({"artefact": "/etc/passwd"}, "no path inside"),
        ({"artefact": ""}, "name what the build makes"),
        ({"artefact": "target/*.jar", "to": ""}, "pattern"),
        ({"to": "../../x"}, "no path inside"),
        ({"tool": "container"}, "image"),
        ({"tool": "ant"}, "tool"),
    ],
)
def test_a_build_that_makes_no_sense_is_refused(more: dict[str, str], words: str) -> None:
    asked = {"repository": "/srv/a", "commit": "main", "tool": "make", "artefact": "app", **more}
    with pytest.raises(ValidationError, match=words):
        BuildStep.model_validate(asked)


def test_an_admin_writes_the_build_and_whoever_launches_gives_the_commit() -> None:
    asked = {"repository": "/srv/a", "tool": "make", "artefact": "app"}
    one, other = (BuildStep.model_validate({**asked, "commit": commit}) for commit in ("v1", "v2"))
    assert [reserved.value for reserved in one.reserved()] == [reserved.value for reserved in other.reserved()]
