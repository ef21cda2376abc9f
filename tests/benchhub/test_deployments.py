"""The unit files and the manifests start what `manage.py up` starts, with as few rights, and their linters agree."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from benchhub.embedded import PROJECT_DIR
from benchhub.supervisor import child_specs, site_specs
from tests.benchhub.test_compose import COMPOSE, environment_of
from tests.needs import program

UNITS = PROJECT_DIR / "docs" / "deploy" / "systemd"
MANIFESTS = PROJECT_DIR / "docs" / "deploy" / "kubernetes"
SPECS = {spec.name: spec for spec in child_specs(8000)}
HARDENED = 2.0
"""The exposure that systemd-analyze may find at most, of 10."""
PROGRAM = "/srv/benchhub/.venv/bin/python"
NOT_CHECKED = "Kustomization"  # no kind of the API server


def objects() -> dict[tuple[str, str], dict[str, Any]]:
    """All objects of the manifests by kind and name."""
    read = [one for file in sorted(MANIFESTS.glob("*.yaml")) for one in yaml.safe_load_all(file.read_text())]
    return {(one["kind"], one.get("metadata", {}).get("name", "")): one for one in read}


OBJECTS = objects()
PODS = {key: one["spec"]["template"]["spec"] for key, one in OBJECTS.items() if "template" in one.get("spec", {})}
CONTAINERS = [
    pytest.param(pod, container, id=f"{name}-{container['name']}")
    for (_, name), pod in PODS.items()
    for container in (*pod.get("initContainers", ()), *pod["containers"])
]


def shown(argv: tuple[str, ...] | list[str]) -> str:
    """A command without what differs between the ways to start it: the path of Python, the address, who is Celery."""
    text = " ".join(argv).replace("127.0.0.1", "0.0.0.0").replace("%%", "%")
    return re.sub(r"^\S*python -m celery", "celery", re.sub(r"^\S*/python\b", "python", text))


# systemd --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_a_unit_starts_what_up_starts(name: str) -> None:
    unit = (UNITS / f"benchhub-{name}.service").read_text()
    started = re.findall(r"^ExecStart=(.*)$", unit, re.M)
    assert [shown(command.split()) for command in started] == [shown(SPECS[name].argv)]
    assert float(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.M)[0]) >= SPECS[name].patience_s


def test_the_example_of_the_environment_names_settings_that_there_are() -> None:
    named = re.findall(r"^([A-Z_]+)=", (UNITS / "environment.example").read_text(), re.M)
    guide = (PROJECT_DIR / "docs" / "operations.md").read_text()
    assert {
        name for name in named if f"| `{name.removesuffix('_FILE')}`" not in guide and f"| `{name}`" not in guide
    } == set()


@program("systemd-analyze")
def test_the_units_are_right_and_hardened_as_systemd_sees_it(tmp_path: Path) -> None:
    for unit in UNITS.glob("benchhub*"):
        text = (
            unit.read_text()
            .replace(PROGRAM, sys.executable)
            .replace("WorkingDirectory=/srv/benchhub", "WorkingDirectory=/")
        )
        (tmp_path / unit.name).write_text(text)
    units = sorted(str(path) for path in tmp_path.iterdir())
    assert len(units) == len(SPECS) + 2
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    for service in (unit for unit in units if unit.endswith(".service")):
        judge = ["systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={HARDENED * 10:.0f}"]
        found = subprocess.run([*judge, service], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout[-3000:]


# Kubernetes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [key for key in OBJECTS if key[0] != NOT_CHECKED], ids="-".join)
def test_a_manifest_is_what_the_schema_of_kubernetes_wants(key: tuple[str, str]) -> None:
    kubernetes_validate.validate(OBJECTS[key], "1.33", strict=True)


def test_the_schema_finds_a_field_that_there_is_not() -> None:
    wrong = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"port": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.33", strict=True)


def test_kustomize_names_every_manifest() -> None:
    listed = set(OBJECTS[(NOT_CHECKED, "")]["resources"])
    assert listed == {file.name for file in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml"}


def test_deployments_start_what_up_starts_and_there_is_one_beat() -> None:
    own = {name: one["spec"] for (kind, name), one in OBJECTS.items() if kind == "Deployment" and name != "redis"}
    assert {name: shown(spec["template"]["spec"]["containers"][0]["args"]) for name, spec in own.items()} == {
        name: shown(spec.argv) for name, spec in SPECS.items()
    }
    assert (own["beat"]["replicas"], own["beat"]["strategy"]["type"]) == (1, "Recreate")
    for name, spec in own.items():
        pod = spec["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] >= SPECS[name].patience_s
        assert pod["initContainers"][0]["args"][-2:] == ["migrate", "--check"]
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_a_container_has_no_rights_and_says_what_it_needs(pod: dict[str, Any], container: dict[str, Any]) -> None:
    rights = {**pod["securityContext"], **container["securityContext"]}
    assert (rights["runAsNonRoot"], rights["runAsUser"] > 0, rights["seccompProfile"]["type"]) == (
        True,
        True,
        "RuntimeDefault",
    )
    assert (rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"]) == (False, True)
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert pod["automountServiceAccountToken"] is False
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]
    mounted = {mount["name"] for mount in container.get("volumeMounts", ())}
    assert mounted <= {volume["name"] for volume in pod.get("volumes", ())}


def test_the_web_server_is_asked_for_its_health_where_it_gives_it() -> None:
    container = PODS[("Deployment", "web")]["containers"][0]
    asked = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert asked == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert container["ports"] == [{"name": "http", "containerPort": 8000}]


def test_manifests_name_settings_that_there_are_and_the_images_of_compose() -> None:
    known = {key for name in SPECS for key in environment_of(name)} | {"BENCHHUB_KEY_FILE"}
    named = set(OBJECTS[("ConfigMap", "benchhub")]["data"])
    named |= {entry["name"] for pod in PODS.values() for one in pod["containers"] for entry in one.get("env", ())}
    assert {name for name in named if name not in known and name.removesuffix("_FILE") not in known} == set()
    used = {container["image"] for pod in PODS.values() for container in pod["containers"]}
    assert used == {"benchhub", COMPOSE["services"]["redis"]["image"]}
    assert PODS[("Deployment", "redis")]["containers"][0]["args"] == COMPOSE["services"]["redis"]["command"]


# A site ---------------------------------------------------------------------------------------------------------------


def test_the_compose_file_of_a_site_starts_what_the_command_worker_starts() -> None:
    text = (PROJECT_DIR / "docs" / "deploy" / "site" / "docker-compose.yml").read_text()
    services = yaml.safe_load(text.replace("${BENCHHUB_SITE}", "berlin").replace("${BENCHHUB_RUNS:-16}", "16"))[
        "services"
    ]
    specs = {spec.name: spec for spec in site_specs("berlin", 16)}
    assert {name: shown(one["command"]) for name, one in services.items()} == {
        name: shown(spec.argv) for name, spec in specs.items()
    }
    assert all(set(spec.environment) <= set(services[name]["environment"]) for name, spec in specs.items())
    assert {spec.environment["BENCHHUB_SITE"] for spec in specs.values()} == {"berlin"}
    assert not any("ports" in one for one in services.values())
