"""An installation as people and programs see it: over HTTPS, through the proxy of the guide."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from benchhub.processes import spawn
from tests.containers.compose import ROOT, Stack, free_port, until

USER, PASSWORD, TEAM = "ada", "Enchantress-of-Numbers-1843", "tuning"
RUN_S, HOST_S = 400, 90
GUIDE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
APPLICATION = {
    "server": {
        "kind": "tomcat",
        "home": "/opt/tomcat",
        "open_examples": True,
        "port": 8080,
        "cpus": "0",
        "jvm_options": ["-Xms128m", "-Xmx128m"],
        "ready": {"path": "/examples/servlets/servlet/HelloWorldExample", "body_contains": "Hello", "timeout_s": 200},
    }
}
TUNED = "/etc/tuned.conf"
RECIPE = {"steps": [{"kind": "limits", "nofile": 4096}, {"kind": "file", "path": TUNED, "content": "tuned\n"}]}


def workload(measure_s: int) -> dict[str, Any]:
    return {
        "driver": {"kind": "wrk", "connections": 4, "threads": 1},
        "path": "/examples/servlets/servlet/HelloWorldExample",
        "cpus": "1",
        "phases": [
            {"name": "warm-up", "kind": "warm_up", "duration_s": 1},
            {"name": "load", "kind": "measure", "duration_s": measure_s},
        ],
    }


@dataclass
class Site:
    """Where the proxy answers, the authority of its certificate, and a token of the team."""

    url: str
    authority: Path
    token: str = ""

    def sign_in(self, password: str = PASSWORD) -> requests.Session:
        """A browser's way in: the form with its token, the cookies, the page behind it."""
        browser = requests.Session()
        browser.trust_env = False  # REQUESTS_CA_BUNDLE of this machine would win over `verify`
        browser.verify = str(self.authority)
        form = browser.get(f"{self.url}/accounts/login/", timeout=60)
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form.text)
        assert found is not None, form.text[:2000]
        given = {"csrfmiddlewaretoken": found[1], "login": USER, "password": password}
        browser.post(f"{self.url}/accounts/login/", given, headers={"Referer": form.url}, timeout=60)
        return browser

    def lets_in(self) -> bool:
        """Whether the person's password still opens the pages: the first one leads to the team's own."""
        page = self.sign_in().get(f"{self.url}/", timeout=60)
        return page.status_code == 200 and "/accounts/login/" not in page.url

    def ask(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        """A request of the API. AssertionError when its answer has another status."""
        headers = {"Authorization": f"Bearer {self.token}"}
        place = f"{self.url}/api/v1{path}"
        answer = requests.request(method, place, json=body, headers=headers, verify=str(self.authority), timeout=120)
        assert answer.status_code == status, (method, path, answer.status_code, answer.text[:2000])
        return answer.json()

    def seen(self, path: str) -> Any:
        """The same for a GET while parts of BenchHub are down: None when there is no proper answer."""
        with contextlib.suppress(AssertionError, requests.RequestException):
            return self.ask("GET", path)
        return None

    def add_host(self, name: str, on_host: Callable[..., str]) -> None:
        """A host of the lab as the guide says it: add, let in, test, compare, approve. `on_host`: a command there."""
        host = self.ask("POST", "/hosts", {"name": name, "address": name, "user": "root"}, status=201)
        on_host("let-in", host["public_key"])
        shown = re.search(r"SHA256:\S+", on_host("host-key"))
        assert shown is not None
        self.ask("POST", f"/hosts/{name}/check", status=202)
        self._until_host(name, lambda host: host["offered_fingerprint"] == shown[0])
        self.ask("POST", f"/hosts/{name}/approve-key", {"fingerprint": shown[0]})
        self._until_host(name, lambda host: host["check"]["state"] == "ok")

    def _until_host(self, name: str, holds: Callable[[Any], bool]) -> None:
        path = f"/hosts/{name}"
        until(lambda: holds(self.ask("GET", path)), HOST_S, lambda: self.ask("GET", path))

    def save_documents(self) -> None:
        for kind, body in (("applications", APPLICATION), ("recipes", RECIPE)):
            self.ask("PUT", f"/{kind}/tomcat", body, status=201)

    def launch(self, measure_s: int) -> int:
        """Queue a run of Tomcat under wrk; its number."""
        self.ask("PUT", f"/workloads/wrk-{measure_s}", workload(measure_s), status=self._save_status(measure_s))
        names = {"application": "tomcat", "recipe": "tomcat", "workload": f"wrk-{measure_s}"}
        run = self.ask("POST", "/runs", {**names, "sut": "sut", "drivers": ["driver"]}, status=202)
        return int(run["number"])

    def _save_status(self, measure_s: int) -> int:
        return 200 if self.seen(f"/workloads/wrk-{measure_s}") else 201

    def wait_until_measuring(self, run: int) -> None:
        self._wait(run, lambda found: found["state"] in ("measuring", "finished"))
        assert self.ask("GET", f"/runs/{run}")["state"] == "measuring"

    def wait_until_finished(self, run: int) -> dict[str, Any]:
        self._wait(run, lambda found: found["state"] == "finished")
        found: dict[str, Any] = self.ask("GET", f"/runs/{run}")
        return found

    def _wait(self, run: int, holds: Callable[[Any], bool]) -> None:
        def seen() -> bool:
            found = self.seen(f"/runs/{run}")
            return found is not None and holds(found)

        until(seen, RUN_S, lambda: (self.seen(f"/runs/{run}"), self.seen(f"/runs/{run}/log")))

    def hosts(self) -> set[tuple[str, str]]:
        return {(host["name"], host["state"]) for host in self.ask("GET", "/hosts")}


def certificate(place: Path) -> tuple[Path, Path]:
    """A certificate for localhost and its key."""
    file, key = place / "localhost.pem", place / "localhost.key"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*make, "-out", str(file), "-keyout", str(key)], check=True, capture_output=True)
    return file, key


@contextlib.contextmanager
def proxied(stack: Stack, place: Path) -> Iterator[Site]:
    """nginx with the server block of the guide before the stack, on a free port of this machine."""
    block = re.search(r"```nginx\n(.*?)```", GUIDE, re.DOTALL)
    assert block is not None
    port, (file, key) = free_port(), certificate(place)
    replaced = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "bench.example.org": "localhost",
        "/etc/ssl/bench.pem": str(file),
        "/etc/ssl/private/bench.key": str(key),
        "127.0.0.1:8000": f"127.0.0.1:{stack.port}",
    }
    text = block[1]
    for written, here in replaced.items():
        assert written in text, written
        text = text.replace(written, here)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {place}/{kind};\n" for kind in kinds)
    head = f"daemon off;\npid {place}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
    config = place / "nginx.conf"
    config.write_text(f"{head}http {{\naccess_log off;\n{temporary}{text}}}\n")
    nginx = spawn(["nginx", "-c", str(config), "-p", str(place)], log=place / "nginx.log")
    try:
        site = Site(f"https://localhost:{port}", file)
        until(lambda: nginx.poll() is None and _listens(site), 30, (place / "nginx.log").read_text)
        yield site
    finally:
        nginx.terminate()
        nginx.wait(timeout=30)


def _listens(site: Site) -> bool:
    try:
        requests.get(f"{site.url}/healthz", verify=str(site.authority), timeout=10)
    except requests.RequestException:
        return False
    return True
