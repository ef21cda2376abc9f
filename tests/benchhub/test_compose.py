from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands

from benchhub.embedded import PROJECT_DIR
from benchhub.supervisor import child_specs
from experiments.keeping.operating.slow_work import PLACES

COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT_DIR / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
IMAGE = SERVICES["migrate"]["image"]
OWN = [name for name, service in SERVICES.items() if service.get("image") == IMAGE]
LAB = ["sut", "driver"]


def environment_of(name: str) -> dict[str, str | None]:
    environment: dict[str, str | None] = SERVICES[name]["environment"]
    return environment


def queues(command: list[str] | tuple[str, ...]) -> set[str]:
    return set(command[list(command).index("-Q") + 1].split(",")) if "-Q" in command else set()


def test_compose_and_up_run_the_same_processes_on_the_same_queues() -> None:
    specs = {spec.name: spec for spec in child_specs(8000)}

    assert set(specs) == set(OWN) - {"migrate"}
    for name, spec in specs.items():
        command = SERVICES[name].get("command", [])
        assert queues(command) == queues(spec.argv)
        assert ("-P" in command and command[command.index("-P") + 1]) == (
            "-P" in spec.argv and spec.argv[spec.argv.index("-P") + 1]
        )
        assert set(spec.environment) <= set(environment_of(name))


@pytest.mark.parametrize("argv", [SERVICES["worker-default"]["command"], child_specs(8000)[2].argv])
def test_work_that_waits_for_other_machines_never_takes_all_threads(argv: list[str] | tuple[str, ...]) -> None:
    assert (argv[argv.index("-Q") + 1], int(argv[argv.index("-c") + 1]) >= PLACES + 2) == ("default", True)


def test_every_queue_has_a_worker_and_every_tick_a_queue() -> None:
    served = {queue for name in OWN for queue in queues(SERVICES[name].get("command", []))}

    assert served == {queue.name for queue in settings.CELERY_TASK_QUEUES}
    schedule: dict[str, Any] = settings.CELERY_BEAT_SCHEDULE
    assert {entry["options"]["queue"] for entry in schedule.values()} <= served


@pytest.mark.parametrize("name", OWN)
def test_containers_of_benchhub_have_no_rights_and_wait_for_what_they_need(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    for needed, wanted in service["depends_on"].items():
        condition = wanted["condition"]
        assert condition == "service_completed_successfully" or "test" in SERVICES[needed]["healthcheck"]


def test_database_and_broker_are_reached_from_inside_only() -> None:
    assert COMPOSE["networks"]["inner"]["internal"]
    for name in ("postgres", "redis"):
        assert SERVICES[name]["networks"] == ["inner"]
        assert "ports" not in SERVICES[name]
    assert [name for name in SERVICES if "ports" in SERVICES[name]] == ["web"]


def test_lab_hosts_start_only_when_asked_for_and_stay_the_same_hosts() -> None:
    assert [name for name in SERVICES if SERVICES[name].get("profiles") == ["lab"]] == LAB
    assert [SERVICES[name]["volumes"] for name in LAB] == [[f"{name}:/root"] for name in LAB]


def test_each_image_is_built_by_one_service_which_the_others_wait_for() -> None:
    builds = {name: service["image"] for name, service in SERVICES.items() if "build" in service}
    assert builds == {"migrate": IMAGE, "sut": SERVICES["sut"]["image"]}
    assert all("migrate" in SERVICES[name]["depends_on"] for name in OWN if name != "migrate")
    assert SERVICES["driver"]["depends_on"] == ["sut"]
    # Compose 2 asks a registry for the image of a service that does not build it, and would start a stranger's.
    assert {SERVICES[name].get("pull_policy") for name in (*OWN, *LAB)} == {"never"}


@pytest.mark.parametrize("file", ["Dockerfile", "docker/lab/Dockerfile"])
def test_a_build_needs_no_image_that_it_does_not_name(file: str) -> None:
    """A `# syntax=` line fetches the builder's front end from a registry, whatever is there already."""
    assert "# syntax=" not in (PROJECT_DIR / file).read_text()


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_fills_the_disk_with_its_log(name: str) -> None:
    assert SERVICES[name]["logging"]["options"].keys() == {"max-size", "max-file"}


@pytest.mark.parametrize("name", [name for name in SERVICES if "test" in SERVICES[name].get("healthcheck", {})])
def test_a_slow_start_is_no_failure(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["start_period"].endswith("m")


def test_new_keys_are_closed_to_others_whatever_was_there(tmp_path: Path) -> None:
    for file in (".env.example", "bin/new-env", "bin/lib.sh"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(PROJECT_DIR / file, tmp_path / file)
    (tmp_path / "secrets").mkdir(mode=0o755)
    subprocess.run([tmp_path / "bin/new-env"], check=True, capture_output=True)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in (".env", "secrets", "secrets/fernet_keys")}
    assert modes == {".env": 0o600, "secrets": 0o700, "secrets/fernet_keys": 0o444}


def test_names_that_services_use_are_declared() -> None:
    for service in SERVICES.values():
        assert set(service.get("networks", [])) <= set(COMPOSE["networks"])
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
        named = {volume.split(":")[0] for volume in service.get("volumes", []) if not volume.startswith("./")}
        assert named <= set(COMPOSE["volumes"])
        assert set(service.get("depends_on", {})) <= set(SERVICES)


def taken_from_outside() -> set[str]:
    """The variables that compose takes from .env or the shell."""
    named = set(re.findall(r"\$\{(\w+)", (PROJECT_DIR / "docker-compose.yml").read_text()))
    return named | {key for name in OWN for key, value in environment_of(name).items() if value is None}


def test_every_variable_of_compose_is_explained_in_the_example() -> None:
    example = (PROJECT_DIR / ".env.example").read_text()
    explained = set(re.findall(r"^(?:# )?([A-Z_]+)=", example, re.MULTILINE))

    # Which profiles are meant is read by Compose itself.
    assert taken_from_outside() == explained - {"COMPOSE_PROFILES"}


def test_every_documented_setting_reaches_the_containers() -> None:
    guide = (PROJECT_DIR / "docs" / "operations.md").read_text()
    settings_table = guide.partition("## Environment variables")[2].partition("Of `.env` only")[0]
    documented = set(re.findall(r"^\| `([A-Z_]+)`", settings_table, re.MULTILINE))
    image = set(re.findall(r"\b([A-Z_]+)=", (PROJECT_DIR / "Dockerfile").read_text()))
    never = {"DEBUG", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "BENCHHUB_SERVICE_ACCOUNT"}  # of one machine, or of people
    never.add("BENCHHUB_SITE")  # these containers are the central site's

    for name in OWN:
        missing = documented - never - image - set(environment_of(name))
        assert missing <= {"DATABASE_POOL_SIZE", "BENCHHUB_WEB_PROCESSES"}, name  # of the web alone


def test_a_setting_that_nobody_names_keeps_its_default() -> None:
    """An empty text is no default: `${NAME:-}` would switch off what is on by default."""
    source = "".join(path.read_text() for path in (PROJECT_DIR / "benchhub").glob("*.py"))
    empty = {key for name in OWN for key, value in environment_of(name).items() if value == f"${{{key}:-}}"}
    for key in empty:
        assert not re.search(rf'env(?:bool|list)\("{key}", ', source), key


def test_what_compose_builds_mounts_and_starts_is_there() -> None:
    assert (PROJECT_DIR / SERVICES["sut"]["build"] / "Dockerfile").is_file()
    assert COMPOSE["secrets"]["fernet_keys"]["file"] == "./secrets/fernet_keys"
    assert ">secrets/fernet_keys" in (PROJECT_DIR / "bin" / "new-env").read_text()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (PROJECT_DIR / "Dockerfile").read_text(), re.MULTILINE)
    assert all((PROJECT_DIR / source).exists() for line in copied for source in line.split())
    started = [SERVICES[name]["command"] for name in OWN if "command" in SERVICES[name]]
    for command in started:
        assert command[:2] == ["python", "manage.py"] or command[:3] == ["celery", "-A", "benchhub"]
    assert {command[2] for command in started if command[0] == "python"} <= set(get_commands())
    assert {command[3] for command in started if command[0] == "celery"} == {"worker", "beat"}
    assert "http://127.0.0.1:8000/readyz" in str(SERVICES["web"]["healthcheck"])


def test_the_image_serves_with_the_same_options_as_up() -> None:
    dockerfile = (PROJECT_DIR / "Dockerfile").read_text().replace("\\\n", "")
    command = re.findall(r'"([^"]*)"', dockerfile[dockerfile.index("CMD") :])
    web = next(spec for spec in child_specs(8000) if spec.name == "web").argv[1:]

    assert shlex.join(command[1:]) == shlex.join(web).replace("127.0.0.1", "0.0.0.0")
