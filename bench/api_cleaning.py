"""What the examples of the OpenAPI schema say in place of this machine's names, addresses and secrets."""

from __future__ import annotations

import platform
import re

from bench.answer_text import Replacement
from bench.api_answers import Player


def replacement_of(player: Player) -> Replacement:
    """Everything that names this machine, and every secret."""
    hosts = {one["name"]: one for one in player.ask("list_hosts", keep=False)}
    sut, driver = (hosts.get(name) or hosts[f"{name}-1"] for name in ("sut", "driver"))
    server = player.ask("get_application", name="Tomcat 11 examples", keep=False)["body"]["server"]
    home, _, _ = server["home"].rpartition("/")
    return Replacement(
        (
            (re.escape(player.url), "https://benchhub.example.com"),
            (re.escape(server["home"]), "/opt/tomcat"),
            (re.escape(server.get("java_home") or "/no java home"), "/usr/lib/jvm/java-17"),
            (re.escape(home), "/home/bench"),
            (re.escape(home.replace("/sut/", "/driver/")), "/home/bench"),
            (re.escape(sut["address"]), "10.0.0.11"),
            (re.escape(driver["address"]), "10.0.0.21"),
            (rf'"port": ({sut["port"]}|{driver["port"]})\b', '"port": 22'),
            (rf"(10\.0\.0\.\d+):({sut['port']}|{driver['port']})\b", r"\1:22"),
            (r"(port\W{1,6}|http-nio-|://10\.0\.0\.11:)\d{4,5}\b", r"\g<1>8080"),
            (re.escape(platform.release()), "6.12.38-amd64"),
            (r'"user": "root"', '"user": "bench"'),
            (r"\b(user|of) root\b", r"\1 bench"),
            (r"bh_[0-9a-f]{16}_[0-9a-f]{48}", "bh_5f0c2a9be1d34c77_..."),
            (r"(/s|/join|/invitations?)/[\w-]{16,}/", r"\1/Q2hhbmdlLW1lLXBsZWFzZQ/"),
            (r'"secret": "[^"]+"', '"secret": "whsec_..."'),
            (r"(ssh-\w+) [A-Za-z0-9+/=]{40,}( [^\"]*)?", r"\1 AAAAC3NzaC1lZDI1NTE5AAAA... benchhub"),
            (r"SHA256:[A-Za-z0-9+/]{43}", "SHA256:XKBAIGz/6BY1lFd8Pff9YrAyQqBAIuMQhvvhjEQjbTk"),
        )
    )
