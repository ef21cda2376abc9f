"""The documentation names what is there, and only that. Kinds have a test of their own (tests/test_kinds.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from agents.drivers.jmeter.jmx import MAX_PLAN_CHARS
from agents.facts import described
from agents.results import timer_tables
from experiments.analysis.thresholds import LIMITS_OF
from experiments.api.plumbing.body import MAX_VALUES
from experiments.asking.intake.imports import MAX_REPORT_CHARS
from experiments.asking.intake.recordings import MAX_RECORDING_CHARS
from experiments.management.commands import parse
from experiments.registry.documents import yaml_text
from experiments.registry.metrics.vocabulary import METRICS

ROOT = Path(__file__).parent.parent
ADDING = (ROOT / "docs" / "adding.md").read_text()


def test_every_file_that_the_guide_names_exists() -> None:
    paths = re.findall(r"`((?:agents|tests)/[A-Za-z_/]+\.py)`", ADDING)
    assert paths
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).is_file()] == []


READ_BY_CODE = re.compile(r"""env[a-z]+\("([A-Z_]+)"|environ(?:\.get\(|\[)"([A-Z_]+)"|_VARIABLE = "([A-Z_]+)\"""")
READ_BY_SHELL = re.compile(r"\$\{((?:BENCHHUB|LAB|POSTGRES)_[A-Z_]+)")
NOT_OURS = {"DJANGO_SETTINGS_MODULE", "NO_COLOR"}


def environment_variables() -> set[str]:
    """Every variable that the code, the scripts or docker compose read."""
    code = [path for name in ("benchhub", "clients", "experiments", "frontend") for path in (ROOT / name).rglob("*.py")]
    scripts = [path for path in (ROOT / "bin").iterdir() if path.is_file()]
    found = {name for path in code for names in READ_BY_CODE.findall(path.read_text()) for name in names if name}
    found |= {
        name
        for path in [*scripts, ROOT / "docker-compose.yml", ROOT / "docker" / "lab" / "entrypoint.sh"]
        for name in READ_BY_SHELL.findall(path.read_text())
    }
    example = (ROOT / ".env.example").read_text()
    return (found | set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE))) - NOT_OURS


def test_every_environment_variable_is_documented_and_every_documented_one_is_read() -> None:
    operations = (ROOT / "docs" / "operations.md").read_text()
    documented_ones = re.findall(r"^\| `([A-Z_]+)` \|", operations, re.MULTILINE)

    assert sorted(documented_ones) == sorted(environment_variables())


def test_the_limits_of_what_is_sent_are_those_of_the_code(settings: Any) -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    part = text[text.index("## How large") : text.index("## Asking twice")]
    said = dict(re.findall(r"^\| ([^|]+) \| ([0-9,]+(?: MB)?)(?: characters)? \|", part, re.M))
    assert said == {
        "a body, or the texts of a form together": f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE >> 20} MB",
        "values in a body, YAML or JSON": f"{MAX_VALUES:,}",
        "a report of a load tool or a file of benchmarks": f"{MAX_REPORT_CHARS:,}",
        "a recording of nmon, mpstat or top": f"{MAX_RECORDING_CHARS:,}",
        "a table of timers": f"{timer_tables.MAX_CHARS:,}",
        "the description of a machine": f"{described.MAX_CHARS:,}",
        "an application, a recipe, a workload as YAML": f"{yaml_text.MAX_CHARS:,}",
        "a test plan of JMeter": f"{MAX_PLAN_CHARS:,}",
    }
    assert MAX_VALUES == yaml_text.MAX_VALUES
    assert f"everything else up to {parse.MAX_BYTES >> 20} MB" in " ".join(part.split())
    assert f"[{MAX_REPORT_CHARS:,} characters](api.md#how-large)" in (ROOT / "docs" / "jmeter.md").read_text()
    assert f"YAML: safe types, {yaml_text.MAX_CHARS:,} characters" in (ROOT / "docs" / "security.md").read_text()


def test_the_index_names_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    names = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}

    assert names <= set(re.findall(r"\]\(([a-z-]+\.md)\)", index))


def test_every_validity_check_and_every_threshold_has_its_paragraph() -> None:
    text = (ROOT / "docs" / "validity.md").read_text()
    paragraphs = dict(re.findall(r"^### `([a-z_]+)`\n\n(.+?)(?=\n\n#|\Z)", text, re.M | re.S))

    assert sorted(paragraphs) == sorted(LIMITS_OF)
    for name, body in paragraphs.items():
        sentences = " ".join(body.split())
        assert "Source: " in sentences, name
        assert "What to do: " in sentences, name


def test_every_figure_has_its_paragraph() -> None:
    text = (ROOT / "docs" / "figures.md").read_text()
    paragraphs = dict(re.findall(r"^### `([a-z0-9_.]+)`\n\n(.+?)(?=\n\n#|\Z)", text, re.M | re.S))

    assert sorted(paragraphs) == sorted(METRICS)
    assert all(len(body.split()) > 5 for body in paragraphs.values())


def test_every_proof_of_the_security_table_exists() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    named = set(re.findall(r"`((?:tests|experiments|agents|benchhub|frontend)/[A-Za-z0-9_./]+)`", text))

    assert len(named) > 30
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
