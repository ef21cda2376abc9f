"""The files that the published work gives: they are read, and the library's recipes hold their values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agents.drivers.reading import read_report
from agents.formats.xml_document import flatten
from agents.running import snapshot
from agents.servers.liberty.configuration import parse_liberty
from agents.steps.base.step import State
from agents.steps.jvm_options import JvmOptionsStep
from agents.steps.sysctl import SysctlStep
from agents.steps.xml_edit.edits import edit_document
from agents.steps.xml_edit.step import XmlEditStep
from experiments.analysis.scaling_points import efficiency
from experiments.asking.library import catalogue

CASES = Path(__file__).parents[2] / "agents" / "cases"
FILES = CASES / "published"
STOCK = (
    b'<Server><Service name="Catalina"><Connector port="8080" protocol="HTTP/1.1" connectionTimeout="20000" '
    b'redirectPort="8443"/><Engine name="Catalina"><Host name="localhost">'
    b'<Valve className="org.apache.catalina.valves.AccessLogValve"/></Host></Engine></Service></Server>'
)


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FILES / f"{name}.expected.json").read_text())["expected"]
    return found


def step_of(recipe: str, kind: type[Any], **given: Any) -> Any:
    steps = catalogue.recipe(recipe).document.resolve(given, built_in={"sut_cpu_count": 8})
    return next(step for step in steps if isinstance(step, kind))


def sysctls(name: str) -> dict[str, str]:
    lines = (line.partition(" = ") for line in (FILES / name).read_text().splitlines())
    return {key: " ".join(value.split()) for key, equals, value in lines if equals}


def attributes(data: bytes, element: str) -> dict[str, str]:
    """Those of the last element of this name, wherever it stands."""
    found: dict[str, dict[str, str]] = {}
    for path, value in flatten(data).items():
        place, at, name = path.partition("@")
        if at and re.sub(r"\[[0-9]+\]$", "", place.rpartition("/")[2]) == element:
            found.setdefault(place, {})[name] = value
    return found[max(found)] if found else {}


XML = ("connector-before", "connector-after", "connector-ajp", "connector-nio-executor", "connector-apr-executor")


@pytest.mark.parametrize("name", [*XML, "context-resources", "valve-commented"])
def test_a_published_xml_file_is_read_and_what_is_commented_out_is_not_there(name: str) -> None:
    data = b"<file>" + (FILES / f"{name}.xml").read_bytes() + b"</file>"
    for one in expected(name)["elements"]:
        assert attributes(data, one["element"]) == one["attributes"]
    for one in expected(name).get("commented_elements", []):
        assert attributes(data, one["element"]) == {}


# What is published, the recipe that does it, the element, and what Tomcat does not know any more.
MADE: tuple[tuple[str, str, str, set[str]], ...] = (
    ("connector-after", "tomcat-8-cpus-request-threads", "Connector", set()),
    ("connector-ajp", "tomcat-ajp", "Connector", {"maxSpareThreads", "redirectPort"}),
    ("connector-nio-executor", "tomcat-nio-executor", "Executor", {"prestartminSpareThreads"}),
    ("connector-nio-executor", "tomcat-nio-executor", "Connector", {"acceptorThreadCount", "SSLEnabled"}),
    ("connector-apr-executor", "tomcat-apr-executor", "Executor", {"prestartminSpareThreads"}),
    ("connector-apr-executor", "tomcat-apr-executor", "Connector", {"acceptorThreadCount", "SSLEnabled"}),
    ("context-resources", "tomcat-resource-cache", "Resources", set()),
)


@pytest.mark.parametrize(("file", "recipe", "element", "gone"), MADE, ids=[f"{m[1]}-{m[2]}" for m in MADE])
def test_a_recipe_makes_the_published_configuration(file: str, recipe: str, element: str, gone: set[str]) -> None:
    step = step_of(recipe, XmlEditStep)
    stock = b"<Context/>" if file.startswith("context") else STOCK
    edited, _ = edit_document(stock, step.edits)
    published = next(one["attributes"] for one in expected(file)["elements"] if one["element"] == element)
    made = attributes(edited, element)
    if element == "Connector" and file == "connector-ajp":  # it stands before the engine, beside the one for HTTP
        made = next(one for one in connectors(edited) if one["protocol"] == "AJP/1.3")
    assert {name: made.get(name) for name in published if name not in gone} == {
        name: value for name, value in published.items() if name not in gone
    }
    assert not gone & set(made) - {"redirectPort"}


def connectors(data: bytes) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for path, value in flatten(data).items():
        place, _, name = path.partition("@")
        if "/Connector" in place:
            found.setdefault(place, {})[name] = value
    return list(found.values())


def test_the_recipe_has_the_published_options_of_the_jvm_and_those_that_java_17_rejects() -> None:
    published = re.search(r'JAVA_OPTS="(.*?)"', (FILES / "java-opts.sh").read_text(), re.DOTALL)
    assert published is not None
    assert published[1].split() == expected("java-opts")["options"]
    given = {"heap_mb": 4096, "young_mb": 2048, "direct_mb": 4096}
    assert list(step_of("jvm-memory-with-permsize", JvmOptionsStep, **given).options) == published[1].split()
    kept = step_of("jvm-memory", JvmOptionsStep, **given).options
    assert not set(kept) & set(expected("java-opts")["on_java_17"]["rejected"])


def test_the_recipe_has_the_18_published_keys_and_each_becomes_what_was_seen_on_a_host() -> None:
    published = sysctls("sysctl-recipe.conf")
    step = step_of("linux-network-18-keys", SysctlStep)
    assert len(published) == expected("sysctl-recipe")["count"]
    assert {key: " ".join(value.split()) for key, value in step.values.items()} == published
    seen = expected("apply-recipe")
    fixed = {"read-only": "\n".join(seen["refused"])}
    before: State = {**{key: sysctls("sut-before.txt").get(key) for key in published}, **fixed}
    after: State = {**{key: sysctls("sut-after.txt").get(key) for key in published}, **fixed}
    results: dict[str, list[str]] = {}
    for one in step.outcomes(before, after):
        results.setdefault(one.result, []).append(one.setting)
    assert set(results["applied"]) == set(seen["applied"])
    assert set(results["unsupported"]) == {*seen["missing"], *seen["refused"]}


def test_the_difference_of_two_snapshots_is_what_changed_and_not_what_moves_by_itself() -> None:
    before, after = (
        snapshot.parse(
            "\n".join(f"/proc/sys/{key.replace('.', '/')}:{value}" for key, value in sysctls(name).items()).encode()
        )
        for name in ("sut-before.txt", "sut-after.txt")
    )
    changed = expected("sut-diff")["changed"]
    assert snapshot.differences(before, after) == tuple(
        f"sysctl.{key} was {was!r} and is {now!r}" for key, (was, now) in sorted(changed.items())
    )


def test_the_published_files_of_liberty_are_read() -> None:
    options = parse_liberty({"jvm_options": (FILES / "liberty-jvm.options").read_bytes()})
    assert list(options.values()) == expected("liberty-jvm")["active"]
    fragment = (FILES / "liberty-server.xml").read_bytes().replace(b"<path-to>", b"/apps")
    flat = flatten(b"<server>" + fragment + b"</server>")
    wanted = expected("liberty-server")
    assert flat["server/featureManager/feature"] == wanted["features"][0]
    assert flat["server/httpEndpoint@httpPort"] == str(wanted["http_port"])
    assert flat["server/httpEndpoint/httpOptions@maxKeepAliveRequests"] == str(wanted["max_keep_alive_requests"])
    ready = catalogue.application("rest-liberty").document["server"]["ready"]
    assert re.search(ready["log_pattern"], (FILES / "liberty-ready.log").read_text())


@pytest.mark.parametrize("name", ["scaling-measured", "scaling-truncation"])
def test_a_published_table_of_throughput_by_cpus_has_the_expected_efficiency(name: str) -> None:
    rows = [line.split() for line in (FILES / f"{name}.txt").read_text().splitlines()[1:]]
    cpus, rates = [int(row[0]) for row in rows], [float(row[1]) for row in rows]
    wanted = expected(name)
    assert (cpus, rates) == (wanted["cpus"], wanted["normalised"])
    found = [efficiency(at, [rate], [rates[0]], base_cpus=1).ratio for at, rate in zip(cpus, rates, strict=True)]
    assert found == pytest.approx(wanted["efficiency"])


def test_the_published_ratios_follow_from_the_three_reports() -> None:
    names = ("published-default", "published-no-access-log", "published-seven-threads")
    rates = [read_report("wrk2", (CASES / "wrk2" / f"{name}.txt").read_text()).throughput_rps or 0 for name in names]
    wanted = expected("wrk2-comparison")
    assert rates[1] / rates[0] == pytest.approx(wanted["ratio_no_access_log_to_default"], abs=1e-5)
    assert rates[2] / rates[0] == pytest.approx(wanted["ratio_seven_threads_to_default"], abs=1e-5)
    assert [rate / 500_000 for rate in rates] == pytest.approx(wanted["fraction_of_offered"], abs=1e-5)
