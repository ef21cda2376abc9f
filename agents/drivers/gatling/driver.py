"""Gatling: virtual users of a web site, a number of them or so many new ones in a second."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.installed import installed_home
from agents.base.rights import Gate, Rights
from agents.drivers.base.benchmark_tool import BenchmarkTool
from agents.drivers.base.driver import Reaches, Target
from agents.drivers.base.http_options import (
    MARGIN_S,
    SENDS,
    Body,
    Headers,
    Method,
    Rate,
    Timeout,
    checked_url,
    version_in,
    whole_seconds,
)
from agents.readers.base.result_reader import ResultForm, ResultReader
from agents.readers.gatling import GATLING
from agents.results.report import LoadModel, LoadReport

SIMULATION_NAME = "Load.java"
ASKED_NAME = "asked.properties"
LOGGING_NAME = "logback.xml"
# Without it every step of each request is logged, which is load of its own.
_LOGGING = """\
<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %logger{20} - %msg%n%rEx</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="console"/></root>
</configuration>
"""
_VERSION_SCRIPT = """
command -v javac >/dev/null || { echo "there is no javac on this host: install a JDK" >&2; exit 127; }
find "$1/lib/" -name 'gatling-app-*.jar' | grep . || {
  echo "there is no Gatling in $1 on this host: install its jars in $1/lib" >&2
  exit 127
}
"""
_VERSION = re.compile(r"/gatling-app-([0-9][0-9A-Za-z.-]{0,30})\.jar", re.ASCII)
# Its console is its report: from 3.14 on it writes the figures nowhere else, and there only with its pages.
_RUN = """
home=$1 timeout_ms=$2 insecure=$3 seconds=$4 url=$5
mkdir -p classes && javac -nowarn -cp "$home/lib/*" -d classes Load.java >javac.txt 2>&1 || {
  status=$?
  tail -c 4000 javac.txt >&2
  exit "$status"
}
BENCHHUB_URL=$url BENCHHUB_DURATION_S=$seconds exec java --add-opens=java.base/java.lang=ALL-UNNAMED \\
  -Dgatling.http.requestTimeout="$timeout_ms" -Dgatling.ssl.useInsecureTrustManager="$insecure" \\
  -Dgatling.charting.indicators.percentile1=50 -Dgatling.charting.indicators.percentile2=90 \\
  -Dgatling.charting.indicators.percentile3=99 -Dgatling.charting.indicators.percentile4=99.9 \\
  -cp ".:classes:$home/lib/*" io.gatling.app.Gatling -s Load -rf results
"""
_OWN_SIMULATION = f"""\
import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.*;
import io.gatling.javaapi.http.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

public class Load extends Simulation {{
  static Properties asked() {{
    Properties found = new Properties();
    try (Reader reader = Files.newBufferedReader(Path.of("{ASKED_NAME}"), StandardCharsets.UTF_8)) {{
      found.load(reader);
    }} catch (IOException error) {{
      throw new UncheckedIOException(error);
    }}
    return found;
  }}

  {{
    Properties asked = asked();
    int seconds = Integer.parseInt(System.getenv("BENCHHUB_DURATION_S"));
    String url = System.getenv("BENCHHUB_URL");
    // Functions, as a text would be one of Gatling's expressions.
    HttpRequestActionBuilder ask = http("ask").httpRequest(asked.getProperty("method"), session -> url);
    for (String name : asked.stringPropertyNames()) {{
      if (name.startsWith("header.")) {{
        String value = asked.getProperty(name);
        ask = ask.header(name.substring("header.".length()), session -> value);
      }}
    }}
    String body = asked.getProperty("body");
    if (!body.isEmpty()) {{
      ask = ask.body(StringBody(session -> body));
    }}
    HttpProtocolBuilder protocol = http.disableFollowRedirect().disableCaching().shareConnections();
    String users = asked.getProperty("users");
    if (users.isEmpty()) {{
      double rate = Double.parseDouble(asked.getProperty("rate"));
      setUp(scenario("load").exec(ask).injectOpen(constantUsersPerSec(rate).during(seconds))).protocols(protocol);
    }} else {{
      int each = Integer.parseInt(users);
      setUp(scenario("load").during(seconds).on(exec(ask)).injectOpen(atOnceUsers(each)))
          .protocols(protocol)
          .maxDuration(seconds + 1);
    }}
  }}
}}
"""


class Gatling(BenchmarkTool):
    """Gatling. Either so many `users`, each of whom waits for its answer, or `offered_rate_rps` new users a second.

    A `simulation` of your own is Java: its class is called Load, BENCHHUB_URL and BENCHHUB_DURATION_S are in its
    environment.
    """

    rate_option: ClassVar[str] = "offered_rate_rps"
    concurrency_option: ClassVar[str] = "users"
    divided: ClassVar[Mapping[str, str]] = {"users": "users", "offered_rate_rps": "requests/s"}
    results: ClassVar[ResultReader] = GATLING
    version_pattern: ClassVar[re.Pattern[str]] = _VERSION
    install: ClassVar[str] = "put the jars of gatling-charts-highcharts into lib of its home"

    rights: ClassVar[Rights] = Rights(
        does=SENDS,
        data=("headers", "body"),
        gates={
            "home": installed_home("home"),
            "simulation": Gate("a `simulation`: Java does anything", lambda tool: not tool.simulation),
        },
    )

    kind: Literal["gatling"] = "gatling"
    users: int | None = Field(None, ge=1, le=1_000_000)
    """So many at a time, each with its next request as soon as it has its answer."""
    offered_rate_rps: Rate | None = None
    """So many new users in a second, with a request each: a schedule that waits for no answer."""
    method: Method = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    timeout_s: Timeout = 30
    insecure: bool = False
    """Accept any certificate."""
    simulation: Annotated[str, StringConstraints(max_length=256_000, strip_whitespace=False)] = ""
    """A simulation in Java, in place of the options above; it needs the role admin."""
    home: str = Field("/opt/gatling", pattern=r"^/[A-Za-z0-9_./+-]{0,200}$")
    """Where its jars are on the driver host, in lib."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        given = (self.users is not None) + (self.offered_rate_rps is not None)
        if self.simulation and given:
            raise ValueError("a simulation of your own decides the load: leave users and offered_rate_rps out")
        if not self.simulation and given != 1:
            raise ValueError("give either users or offered_rate_rps")
        return self

    def why_no_rate(self) -> str:
        return "" if self.offered_rate_rps else "It has no offered_rate_rps, so there is no rate to change."

    def why_no_concurrency(self) -> str:
        return "" if self.users else "It has no users, so there is no number of them to change."

    def why_indivisible(self) -> str:
        return "a simulation of its own decides the load" if self.simulation else ""

    @property
    def reaches(self) -> Reaches:
        return "http"

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.offered_rate_rps else "closed"

    @property
    def result_form(self) -> ResultForm:
        return self.results.forms[3]

    def headlines(self) -> Sequence[str]:
        return ("throughput_rps",)

    def version_command(self) -> Command:
        return script(_VERSION_SCRIPT, self.home)

    def parse_version(self, output: bytes) -> str:
        return version_in(output, self.version_pattern, self.home, "Gatling")

    def files(self) -> dict[str, str]:
        if self.simulation:
            return {SIMULATION_NAME: self.simulation, LOGGING_NAME: _LOGGING}
        asked = {
            "users": str(self.users or ""),
            "rate": str(self.offered_rate_rps or ""),
            "method": self.method,
            "body": self.body,
            **{f"header.{name}": value for name, value in self.headers.items()},
        }
        lines = [f"{_escaped(name)}={_escaped(value)}\n" for name, value in asked.items()]
        return {SIMULATION_NAME: _OWN_SIMULATION, ASKED_NAME: "".join(lines), LOGGING_NAME: _LOGGING}

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        options = (self.home, str(self.timeout_s * 1000), str(self.insecure).lower(), str(seconds), checked_url(target))
        # It is compiled, and a Java VM starts, before.
        return script(_RUN, *options, timeout_s=seconds + self.timeout_s + 2 * MARGIN_S)

    def completed(self, report: LoadReport) -> LoadReport:
        rate = None if self.offered_rate_rps is None else float(self.offered_rate_rps)
        return replace(report, users=self.users, offered_rate_rps=rate)


def _escaped(text: str) -> str:
    """As java.util.Properties reads it, whatever stands in it."""
    return "".join(
        char if char.isascii() and char.isalnum() else "".join(f"\\u{unit:04x}" for unit in _utf16(char))
        for char in text
    )


def _utf16(char: str) -> list[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
