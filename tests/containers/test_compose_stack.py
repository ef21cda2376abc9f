"""The stack of docker-compose.yml in a real engine: its images, the way in, the lab, what is killed, the way back."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

import pytest
import requests

from tests.containers.compose import OWN, Stack, engine
from tests.containers.conftest import Table
from tests.containers.site import GUIDE, TEAM, TUNED, Site, proxied

pytestmark = [pytest.mark.containers, pytest.mark.slow]

LOADED = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "benchhub.settings"
import benchhub.asgi
files = {getattr(one, "__cached__", None) for one in list(sys.modules.values())} - {None}
print(len(files), [file for file in sorted(files) if not os.path.exists(file)])
"""


def guide(heading: str, number: int = 0) -> str:
    """A block of commands below a heading of the operator's guide."""
    section = re.split(r"^#{2,3} ", GUIDE.partition(f"{heading}\n")[2], maxsplit=1, flags=re.M)[0]
    return str(re.findall(r"```sh\n(.*?)```", section, flags=re.S)[number])


def left_on(stack: Stack, host: str) -> str:
    """What a run should not have left on a host of the lab."""
    look = f"ps -eo comm= | grep -xE 'java|wrk'; ls -d {TUNED} 2>/dev/null; true"
    return stack.on(host, "sh", "-c", look)


def assert_it_ended_right(stack: Stack, site: Site, run: int) -> str:
    """The run came to its end, and both hosts are proven to be as before; says so in few words."""
    found = site.wait_until_finished(run)
    log = site.ask("GET", f"/runs/{run}/log")
    assert (found["outcome"], found["restore"]) == ("succeeded", "verified"), (found["failure"], log)
    assert found["metrics"]["throughput_rps"] > 0
    assert site.hosts() == {("sut", "ready"), ("driver", "ready")}
    assert (left_on(stack, "sut"), left_on(stack, "driver")) == ("", "")
    return f"run {found['outcome']}, {found['validity']}, hosts {found['restore']}"


def test_one_image_is_built_once_and_shared(stack: Stack) -> None:
    images = {engine("inspect", "--format", "{{.Image}}", stack.container(name)).strip() for name in (*OWN, "migrate")}
    assert len(images) == 1
    hosts = {engine("inspect", "--format", "{{.Image}}", stack.container(name)).strip() for name in ("sut", "driver")}
    assert len(hosts) == 1


def test_nothing_that_a_process_loads_is_compiled_at_its_start(stack: Stack) -> None:
    count, _, missing = stack.on("web", "python", "-c", LOADED).strip().partition(" ")
    assert int(count) > 500
    assert json.loads(missing.replace("'", '"')) == []


def test_containers_write_nowhere_but_where_they_should_and_logs_are_bounded(stack: Stack) -> None:
    for name in OWN:
        assert "Read-only" in stack.on(name, "sh", "-c", "touch /srv/benchhub/x 2>&1; true")
    for name in (*OWN, "postgres", "redis", "sut", "driver"):
        log = json.loads(engine("inspect", "--format", "{{json .HostConfig.LogConfig}}", stack.container(name)))
        assert {"max-size", "max-file"} <= log["Config"].keys(), name
    ticks = ("Sending due task", " received", " succeeded in ")
    assert [line for line in stack.log(*OWN).splitlines() if any(words in line for words in ticks)] == []


def test_people_sign_in_over_https_behind_the_proxy_of_the_guide(stack: Stack, site: Site) -> None:
    plain = requests.get(
        f"http://127.0.0.1:{stack.port}/", headers={"Host": "localhost"}, timeout=60, allow_redirects=False
    )
    assert (plain.status_code, plain.headers["Location"]) == (301, "https://localhost/")

    assert (
        site.sign_in("not-the-password").get(f"{site.url}/", timeout=60).url.startswith(f"{site.url}/accounts/login/")
    )
    browser = site.sign_in()
    page = browser.get(f"{site.url}/", timeout=60)
    assert (page.status_code, "/accounts/login/" in page.url) == (200, False)
    assert page.headers["Strict-Transport-Security"]
    assert {cookie.name: cookie.secure for cookie in browser.cookies}["__Host-session"]
    style = re.search(r'href="(/static/[^"]+\.css)"', page.text)
    assert style is not None
    assert browser.get(site.url + style[1], timeout=60).status_code == 200


def test_tomcat_runs_under_wrk_on_the_hosts_of_the_lab_and_events_pass_the_proxy_at_once(
    stack: Stack, site: Site, table: Table
) -> None:
    began = time.monotonic()
    run = site.launch(measure_s=8)
    headers = {"Authorization": f"Bearer {site.token}", "Accept": "text/event-stream"}
    place = f"{site.url}/api/v1/runs/{run}/events?after=0"
    with requests.get(place, headers=headers, verify=str(site.authority), stream=True, timeout=400) as stream:
        lines = stream.iter_lines()
        assert next(line for line in lines if line.startswith(b"data: "))
        assert site.ask("GET", f"/runs/{run}")["state"] != "finished", "a proxy that buffers gives all of it at the end"
        assert any(line == b"event: end" for line in lines)
    table.add("Tomcat under wrk, 8 s", assert_it_ended_right(stack, site, run), time.monotonic() - began)


@pytest.mark.parametrize("service", ["worker-runs", "worker-default", "redis", "postgres", "web"])
def test_a_run_ends_right_although_a_service_is_killed_while_it_measures(
    stack: Stack, site: Site, table: Table, service: str
) -> None:
    run = site.launch(measure_s=12)
    site.wait_until_measuring(run)
    before, _ = stack.state(service)
    began = time.monotonic()
    stack.kill(service)
    stack.wait_until_back(service, before)
    back_s = time.monotonic() - began
    said = assert_it_ended_right(stack, site, run)
    table.add(f"{service} killed while measuring", f"back after {back_s:.0f} s, {said}", time.monotonic() - began)


def test_hosts_of_the_lab_are_the_same_hosts_in_new_containers(stack: Stack, site: Site) -> None:
    before = {name: (stack.container(name), stack.on(name, "host-key")) for name in ("sut", "driver")}
    stack.do("up", "-d", "--force-recreate", "--no-deps", "sut", "driver")
    for name, (container, key) in before.items():
        stack.wait_until_back(name, "")
        assert stack.container(name) != container
        assert stack.on(name, "host-key") == key
    assert_it_ended_right(stack, site, site.launch(measure_s=2))


def test_keys_are_rotated_as_the_guide_says(stack: Stack, site: Site) -> None:
    old = (stack.root / "secrets/fernet_keys").read_text()
    said = stack.sh(guide("## Keys", 1))
    assert "2 secrets sealed anew" in said
    new, kept = (stack.root / "secrets/fernet_keys").read_text().split()
    assert (kept == old.strip(), new != kept) == (True, True)

    stack.sh(f"rm -f secrets/fernet_keys; echo {new} >secrets/fernet_keys; chmod 0444 secrets/fernet_keys")
    stack.sh("docker compose up -d --force-recreate web worker-runs worker-default beat")
    stack.wait_until_ready()
    assert_it_ended_right(stack, site, site.launch(measure_s=2))


def test_a_backup_is_restored_on_a_new_machine_and_over_what_is_there(
    stack: Stack, site: Site, table: Table, tmp_path: Path
) -> None:
    began = time.monotonic()
    stack.sh(guide("### Docker Compose").replace("SAFE_PLACE", str(tmp_path)))
    numbers = [run["number"] for run in site.ask("GET", "/runs")["items"]]

    other = Stack.make(tmp_path / "new", f"{stack.project}n")
    try:
        settings = (tmp_path / ".env").read_text()
        (other.root / ".env").write_text(settings)
        (other.root / "secrets/fernet_keys").unlink()
        shutil.copy(tmp_path / "fernet_keys", other.root / "secrets")
        other.set(COMPOSE_PROJECT_NAME=other.project, BENCHHUB_PORT=str(other.port), COMPOSE_PROFILES="")
        shutil.copy(stack.root / "benchhub.backup", other.root)
        for _ in range(2):  # into an empty stack, and again over what has come since
            other.sh(guide("### Docker Compose", 1))
            other.wait_until_ready()
            with proxied(other, tmp_path) as restored:
                restored.token = site.token
                assert [run["number"] for run in restored.ask("GET", "/runs")["items"]] == numbers
                assert restored.lets_in()
            other.manage("seed_runs", "50", "--team", TEAM)
    finally:
        other.remove()
    table.add("backup, restore on a new machine and again", f"{len(numbers)} runs", time.monotonic() - began)
