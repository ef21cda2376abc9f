"""The built-in test plan: users that make simple HTTP requests, written as JMX."""

from __future__ import annotations

import math
import re
from typing import Literal

from lxml import etree
from pydantic import BaseModel, Field, field_validator, model_validator

from agents.base.model import Frozen

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
MAX_ENTRIES = 1000

TARGET = ("scheme", "host", "port", "path", "duration_s")
"""What the plan is told at each start, as properties `benchhub.NAME`."""

RATES = ("offered_rate_rps", "offered_rate_per_min")
"""The rate as an uploaded plan may want it: JMeter's Constant Throughput Timer counts per minute."""


class Request(Frozen):
    """One kind of request. `weight` is its share among the others; `path` empty = that of the workload."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    path: str = Field("", pattern=r"^(/[^\s]*)?$", max_length=2000)
    body: str = Field("", max_length=256_000)
    label: str = Field("", max_length=120)
    weight: int = Field(1, ge=1, le=1000)
    headers: dict[str, str] = Field(default_factory=dict, max_length=50)

    @field_validator("headers")
    @classmethod
    def _headers_are_one_line(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or re.search(r"[\x00-\x08\x0a-\x1f\x7f]|\$\{", value):
                raise ValueError(f"'{name[:100]}' is not a header of one line without ${{...}}")
        return headers

    @field_validator("body", "label", "path")
    @classmethod
    def _no_code(cls, text: str) -> str:
        if "${" in text or _CONTROL.search(text):
            raise ValueError("it may not hold ${...} or control characters; upload a plan for functions and variables")
        return text

    @property
    def name(self) -> str:
        return self.label or f"{self.method} {self.path}".strip()


class HttpPlan(BaseModel):
    """Users that repeat requests without a pause, or with a think time between the bounds before each one.

    With `loops` each user makes that many rounds and the phase's duration is the upper bound; without, users go on
    until the phase is over. `order` random draws one request by its weight in each round, in_turn makes all of them.
    With `offered_rate_rps` requests follow a schedule, at random moments like those of visitors (a Poisson process), as
    long as a user is free; what is late is sent at once.
    For an uploaded plan only the users, the rate, `ramp_up_s` and `loops` mean something: they can be given to it as
    properties.
    """

    users: int = Field(10, ge=1, le=20_000)
    warm_up_users: int | None = Field(None, ge=1, le=20_000, description="Users of the warm-up phases; empty = users.")
    ramp_up_s: int = Field(0, ge=0, le=24 * 3600)
    loops: int | None = Field(None, ge=1, le=1_000_000_000)
    offered_rate_rps: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Requests per second of all users together, on a schedule; empty = no rate.",
    )
    think_time_min_ms: int = Field(0, ge=0, le=3_600_000)
    think_time_max_ms: int = Field(0, ge=0, le=3_600_000)
    requests: tuple[Request, ...] = Field((Request(),), min_length=1, max_length=100)
    order: Literal["random", "in_turn"] = "random"
    keep_alive: bool = True
    follow_redirects: bool = True
    connect_timeout_ms: int = Field(5_000, ge=1, le=3_600_000)
    response_timeout_ms: int = Field(20_000, ge=1, le=3_600_000)

    @model_validator(mode="after")
    def _fits(self) -> HttpPlan:
        if self.think_time_max_ms < self.think_time_min_ms:
            raise ValueError("think_time_max_ms cannot be smaller than think_time_min_ms")
        if self.offered_rate_rps and self.think_time_max_ms:
            raise ValueError("with offered_rate_rps there is no think time: the schedule says when a request is sent")
        names = [request.name for request in self.requests]
        if len(set(names)) != len(names):
            raise ValueError("requests: two of them have the same label; the results could not be told apart")
        if sum(self.shares()) > MAX_ENTRIES:
            raise ValueError(f"requests: the weights come to more than {MAX_ENTRIES} shares; use rounder ones")
        return self

    def shares(self) -> list[int]:
        """The weights in their lowest terms."""
        common = math.gcd(*(request.weight for request in self.requests))
        return [request.weight // common for request in self.requests]

    def plan_text(self) -> str:
        """The test plan as JMX."""
        root = etree.Element("jmeterTestPlan", version="1.2", properties="5.0", jmeter="5.6.3")
        plan, below = _element(etree.SubElement(root, "hashTree"), "TestPlan", "TestPlanGui", "BenchHub")
        arguments = etree.SubElement(
            plan, "elementProp", name="TestPlan.user_defined_variables", elementType="Arguments"
        )
        etree.SubElement(arguments, "collectionProp", name="Arguments.arguments")
        group, users = _element(below, "ThreadGroup", "ThreadGroupGui", "Users")
        _text(group, "ThreadGroup.on_sample_error", "continue")
        _text(group, "ThreadGroup.num_threads", str(self.users))
        _text(group, "ThreadGroup.ramp_time", str(self.ramp_up_s))
        _bool(group, "ThreadGroup.scheduler", value=True)
        _text(group, "ThreadGroup.duration", "${__P(benchhub.duration_s)}")
        _text(group, "ThreadGroup.delay", "0")
        _bool(group, "ThreadGroup.same_user_on_next_iteration", value=True)
        loop = etree.SubElement(group, "elementProp", name="ThreadGroup.main_controller", elementType="LoopController")
        _text(loop, "LoopController.loops", str(self.loops or -1))
        _bool(loop, "LoopController.continue_forever", value=False)
        if self.think_time_max_ms:
            timer, _ = _element(users, "UniformRandomTimer", "UniformRandomTimerGui", "Think time")
            _text(timer, "ConstantTimer.delay", str(self.think_time_min_ms))
            _text(timer, "RandomTimer.range", str(self.think_time_max_ms - self.think_time_min_ms))
        if self.offered_rate_rps:
            self._schedule(users)
        shares = self.shares()
        if self.order == "random" and len(self.requests) > 1:
            mix, users = _element(users, "RandomController", "RandomControlGui", "Mix")
            etree.SubElement(mix, "intProp", name="InterleaveControl.style").text = "1"
        else:
            shares = [1] * len(self.requests)
        for request, share in zip(self.requests, shares, strict=True):
            for _ in range(share):
                self._sampler(users, request)
        text: str = etree.tostring(root, encoding="unicode", pretty_print=True)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'

    def _schedule(self, tree: etree._Element) -> None:
        """JMeter's Precise Throughput Timer, whose schedule has at least the requests that the rate means.

        The Constant Throughput Timer counts in whole ms and does not catch up on what is late.
        """
        timer = etree.SubElement(
            tree,
            "PreciseThroughputTimer",
            guiclass="TestBeanGUI",
            testclass="PreciseThroughputTimer",
            testname="Offered rate",
            enabled="true",
        )
        etree.SubElement(tree, "hashTree")
        values = {
            "throughput": str(self.offered_rate_rps),
            "throughputPeriod": "1",
            "duration": "${__P(benchhub.duration_s)}",
            "exactLimit": "10000",
            "allowedThroughputSurplus": "1",
            "batchSize": "1",
            "batchThreadDelay": "0",
            "randomSeed": "0",
        }
        for name, value in values.items():
            _text(timer, name, value)

    def _sampler(self, tree: etree._Element, request: Request) -> None:
        sampler, below = _element(tree, "HTTPSamplerProxy", "HttpTestSampleGui", request.name)
        _bool(sampler, "HTTPSampler.postBodyRaw", value=bool(request.body))
        arguments = etree.SubElement(sampler, "elementProp", name="HTTPsampler.Arguments", elementType="Arguments")
        collection = etree.SubElement(arguments, "collectionProp", name="Arguments.arguments")
        if request.body:
            argument = etree.SubElement(collection, "elementProp", name="", elementType="HTTPArgument")
            _bool(argument, "HTTPArgument.always_encode", value=False)
            _text(argument, "Argument.value", request.body)
            _text(argument, "Argument.metadata", "=")
        _text(sampler, "HTTPSampler.protocol", "${__P(benchhub.scheme)}")
        _text(sampler, "HTTPSampler.domain", "${__P(benchhub.host)}")
        _text(sampler, "HTTPSampler.port", "${__P(benchhub.port)}")
        _text(sampler, "HTTPSampler.path", request.path or "${__P(benchhub.path)}")
        _text(sampler, "HTTPSampler.method", request.method)
        _text(sampler, "HTTPSampler.connect_timeout", str(self.connect_timeout_ms))
        _text(sampler, "HTTPSampler.response_timeout", str(self.response_timeout_ms))
        _text(sampler, "HTTPSampler.contentEncoding", "UTF-8")
        _bool(sampler, "HTTPSampler.use_keepalive", value=self.keep_alive)
        _bool(sampler, "HTTPSampler.follow_redirects", value=self.follow_redirects)
        _bool(sampler, "HTTPSampler.auto_redirects", value=False)
        if request.headers:
            manager, _ = _element(below, "HeaderManager", "HeaderPanel", "Headers")
            collection = etree.SubElement(manager, "collectionProp", name="HeaderManager.headers")
            for name, value in request.headers.items():
                header = etree.SubElement(collection, "elementProp", name=name, elementType="Header")
                _text(header, "Header.name", name)
                _text(header, "Header.value", value)


def _element(tree: etree._Element, kind: str, gui: str, name: str) -> tuple[etree._Element, etree._Element]:
    """A test element and the tree of what stands below it."""
    element = etree.SubElement(tree, kind, guiclass=gui, testclass=kind, testname=name, enabled="true")
    return element, etree.SubElement(tree, "hashTree")


def _text(element: etree._Element, name: str, text: str) -> None:
    etree.SubElement(element, "stringProp", name=name).text = text


def _bool(element: etree._Element, name: str, *, value: bool) -> None:
    etree.SubElement(element, "boolProp", name=name).text = "true" if value else "false"
