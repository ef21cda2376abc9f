"""The properties that a JMeter plan asks for: which are secrets, and what each probably means by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.redaction import HIDDEN, masked
from agents.drivers.jmeter import jmx

_OF_JMETER = re.compile(
    r"asynch|assertion|backend_graphite|backend_influxdb|beanshell|bsh|cachemanager|cache_manager|classfinder"
    r"|classname|client|cookiemanager|cookies|counterfn|csvdataset|csvread|cssparser|darcula|function"
    r"|functions|groovy|gui|hc|htmlparser|http|httpclient|httpclient4|httpjava|httpresponse|https|httpsampler"
    r"|include|java|javascript|javax|jdbc|jdk|jms|jmeter|jmeterengine|jmeterthread|jndi|jsr223|kerberos"
    r"|keytool|language|ldap|locales|log4j|log4j2|log_file|log_level|logkit|loggerpanel|mail|mirror|mode|mongo"
    r"|mqtt|monitor|num_sample_threshold|onload|org|os|plugin_dependency_paths|prefixtopleveltag|proxy|remote"
    r"|remote_hosts|resultcollector|rmi|sample_sender_client_configured|sample_sender_strip_also_on_error"
    r"|sample_variables|sampleresult|saveservice_properties|search_paths|security|server|smtpsampler|ssl"
    r"|stickymode|summariser|sun|system|tcp|testbean|testplan|textarea|time_threshold|timer|undo"
    r"|upgrade_properties|user|view|wmlparser|xml|xpath|xpath2|xpath2query|xslt|xstream"
)
"""The first words of the properties that JMeter, its plug-ins' loader and Java read (its files *.properties)."""

_ALSO_TUNING = re.compile(
    r"httpclient4\.(?:retrycount|idletimeout|validate_after_inactivity|time_to_live|max_body_retain_size"
    r"|request_sent_retry_enabled|deflate_relax_mode|gzip_relax_mode)|httpclient\.(?:timeout|version|socket\.https?\.cps)"
    r"|httpclient\.reset_state_on_thread_group_iteration|CookieManager\.(?:check\.cookies|save\.variables|delete_null.*)"
    r"|https\.(?:default\.protocol|use\.cached\.ssl\.context)|sampleresult\.(?:useNanoTime|nanoThreadSleep|timestamp\.start)"
    r"|jmeter\.httpsampler|http\.java\.sampler\.retries"
)
_WORD = re.compile(r"[A-Za-z0-9_.-]{0,64}")


def property_of_plan(name: str, value: str) -> bool:
    """Whether only the plan reads the property, or it tunes JMeter's HTTP client and no more.

    A value `file` is refused, as a plan may take the protocol of its requests from a property.
    """
    if value.strip().lower().startswith("file"):
        return False
    if _ALSO_TUNING.fullmatch(name):
        return _WORD.fullmatch(value) is not None
    return _OF_JMETER.fullmatch(name.partition(".")[0].lower()) is None


_SECRET_TOO = re.compile(r"token|pwd", re.IGNORECASE)

_MEANS: dict[str, frozenset[str]] = {
    "scheme": frozenset({"scheme", "proto", "protocol"}),
    "host": frozenset({"host", "hostname", "server", "domain", "targethost"}),
    "port": frozenset({"port", "targetport"}),
    "path": frozenset({"path", "url", "uri"}),
    "duration_s": frozenset({"duration", "durations", "durationseconds", "durationsec"}),
    "users": frozenset({"users", "thread", "threads", "numthreads", "vusers"}),
    "ramp_up_s": frozenset({"ramp", "rampup", "rampups", "rampuptime", "ramptime"}),
    "loops": frozenset({"loop", "loops", "loopcount", "iterations"}),
}


@dataclass(frozen=True)
class PlanProperty:
    """`default` is the plan's own, None = none or a secret. `suggestion` is "" or a field such as {host}."""

    name: str
    default: str | None
    secret: bool
    suggestion: str


def plan_properties(text: str) -> list[PlanProperty]:
    """The properties of a plan in its order. PlanError when it cannot be read."""
    found = []
    for one in jmx.parameters(text):
        secret = any(_SECRET_TOO.search(part) or masked(part, "value") == HIDDEN for part in one.name.split("."))
        found.append(PlanProperty(one.name, None if secret else one.default, secret, _suggestion(one.name)))
    return found


def suggested(properties: list[PlanProperty]) -> dict[str, str]:
    """The properties whose names say what they mean, with the field that BenchHub fills in for each phase."""
    return {one.name: one.suggestion for one in properties if one.suggestion}


def _suggestion(name: str) -> str:
    plain = re.sub(r"[^a-z]", "", name.lower())
    return next((f"{{{field}}}" for field, names in _MEANS.items() if plain in names), "")
