"""Try the description with tools that others write, and say which of them stumbles.

    python -m bench.api_tools                                  # of this checkout: lint, generate, compile
    python -m bench.api_tools http://127.0.0.1:8765 "$TOKEN"   # of an installation; each client launches a run there

Needs npm, Java (the generator of Go clients) and go; what is not there is said and left out. The tools of Node are
those of package.json beside this file; they, the generator of Python clients and what is generated stand in --place.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import urllib.request
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PYTHON_TOOLS = ("openapi-python-client==0.29.1", "openapi-spec-validator==0.9.0")
RUN = {"application": "tomcat", "recipe": "limits", "workload": "home", "sut": "sut-1", "drivers": ["driver-1"]}


@dataclass(frozen=True)
class Place:
    """Where the tools and what they make stand; `url` and `token` of an installation to launch runs on, or empty."""

    directory: Path
    url: str
    token: str

    def run(self, *argv: str, at: str = ".", env: Mapping[str, str] | None = None) -> None:
        """Run a tool; CalledProcessError when it is not content. Its output goes to the terminal."""
        print("$", *argv, flush=True)
        path = f"{self.directory / 'node_modules/.bin'}:{self.directory / 'python/bin'}:{os.environ['PATH']}"
        place = self.directory / at
        whole = {**os.environ, "PATH": path, "PWD": str(place), **(env or {})}  # tools of Node write where PWD says
        subprocess.run(argv, cwd=place, env=whole, check=True)


def description(url: str) -> bytes:
    """The description as an installation serves it, else as this checkout would."""
    if url:
        with urllib.request.urlopen(f"{url}/api/v1/openapi.json", timeout=60) as answer:  # noqa: S310
            return bytes(answer.read())
    import bench.django_project  # noqa: F401 - before the API
    from experiments.api import api
    from experiments.api.plumbing.rendering import rendered

    return rendered(api.get_openapi_schema(path_prefix="/api/v1/"))


def lint(place: Place) -> None:
    """The validator of Python, Spectral and Redocly; their warnings count as well."""
    place.run("openapi-spec-validator", "openapi.json")
    place.run("spectral", "lint", "openapi.json", "-r", str(HERE / "spectral.yaml"), "--fail-severity", "warn")
    place.run("redocly", "lint", "openapi.json", "--config", str(HERE / "redocly.yaml"), "--max-problems", "20")


def python(place: Place) -> None:
    """openapi-python-client: every operation is generated and can be imported."""
    (place.directory / "python.yaml").write_text(
        "content_type_overrides:\n"
        "  application/yaml: text/plain\n"
        "  application/vnd.apache.parquet: application/octet-stream\n"
    )
    place.run(
        *("openapi-python-client", "generate", "--path", "openapi.json", "--output-path", "made_python"),
        *("--meta", "none", "--overwrite", "--fail-on-warning", "--config", "python.yaml"),
    )
    script = HERE / "launch.py"
    place.run("python", str(script), place.url, place.token, json.dumps(RUN), env={"PYTHONPATH": str(place.directory)})


def typescript(place: Place) -> None:
    """openapi-typescript with openapi-fetch, compiled strictly."""
    place.run("openapi-typescript", "openapi.json", "-o", "made.d.ts")
    shutil.copy(HERE / "launch.mts", place.directory)
    place.run("tsc", "--strict", "--module", "nodenext", "--target", "es2022", "launch.mts")
    if place.url:
        place.run("node", "launch.mjs", place.url, place.token, json.dumps(RUN))


def go(place: Place) -> None:
    """openapi-generator's Go client, compiled."""
    shutil.rmtree(place.directory / "made_go", ignore_errors=True)
    place.run(
        *("openapi-generator-cli", "generate", "-i", "openapi.json", "-g", "go", "-o", "made_go"),
        *("--package-name", "benchhub", "--git-user-id", "x", "--git-repo-id", "benchhub"),
        "--additional-properties=withGoMod=true",
    )
    shutil.rmtree(place.directory / "made_go/test")
    command = place.directory / "made_go/launch"
    command.mkdir()
    shutil.copy(HERE / "launch.go.txt", command / "main.go")
    place.run("go", "build", "-mod=mod", "./...", at="made_go")
    if place.url:
        place.run("go", "run", "-mod=mod", "./launch", place.url, place.token, json.dumps(RUN), at="made_go")


NEEDED: Sequence[tuple[Callable[[Place], None], tuple[str, ...]]] = (
    (lint, ("npm",)),
    (python, ()),
    (typescript, ("npm",)),
    (go, ("npm", "java", "go")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default="", help="an installation, to launch runs on")
    parser.add_argument("token", nargs="?", default="", help="with the scopes read and launch")
    parser.add_argument("--place", type=Path, default=Path("/var/tmp/benchhub-api-tools"))  # noqa: S108
    given = parser.parse_args()
    given.place.mkdir(parents=True, exist_ok=True)
    place = Place(given.place.resolve(), given.url.rstrip("/"), given.token)
    (place.directory / "openapi.json").write_bytes(description(place.url))
    shutil.copy(HERE / "package.json", place.directory)
    if not (place.directory / "python").exists():
        venv.create(place.directory / "python", with_pip=True)
    place.run("python", "-m", "pip", "install", "--quiet", *PYTHON_TOOLS)
    if shutil.which("npm"):
        place.run("npm", "install", "--silent")
    failed = []
    for step, programs in NEEDED:
        lacking = [program for program in programs if not shutil.which(program)]
        print(
            f"\n== {step.__name__}" + (f": left out, there is no {', '.join(lacking)}" if lacking else ""), flush=True
        )
        try:
            if not lacking:
                step(place)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            print(error)
            failed.append(step.__name__)
    sys.exit(f"\nNot content: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
