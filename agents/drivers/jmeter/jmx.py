"""Test plans of JMeter (JMX): read without DTD and entities, their parameters listed, and what could do harm named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from agents.base.errors import PlanError
from agents.formats.xml_document import parse_xml

MAX_PLAN_CHARS = 1_000_000
MAX_DEPTH = 200
MAX_ELEMENTS = 100_000

_PARAMETER = re.compile(
    r"\$\{\s*__(?:P\(\s*(?P<p>[^,(){}]{1,200}?)\s*(?:,(?P<p_default>(?:\\.|[^\\){}])*))?\)"
    r"|property\(\s*(?P<q>[^,(){}]{1,200}?)\s*(?:,[^,){}]*(?:,(?P<q_default>(?:\\.|[^\\){}])*))?)?\))\s*\}"
)
_FUNCTION = re.compile(r"\$\{\s*__\s*([^({}\s,]*)")
_HARMLESS_FUNCTIONS = re.compile(
    r"P|property|Random|RandomString|RandomDate|RandomFromMultipleVars|threadNum|threadGroupName|samplerName"
    r"|TestPlanName|time|timeShift|dateTimeConvert|UUID|counter|iterationNum|V|intSum|longSum|urlencode"
    r"|urldecode|escapeHtml|unescapeHtml|escapeXml|unescape|char|changeCase|isPropDefined|isVarDefined"
    r"|machineName|machineIP|log|logn|regexFunction|digest|split|escapeOroRegexpChars"
)
"""What else JMeter and its plug-ins offer runs scripts (Groovy, BeanShell, JEXL), reads or writes files or variables of
the environment, or makes text into calls of functions."""

_ATTRIBUTES = frozenset(
    ["version", "properties", "jmeter", "guiclass", "testclass", "testname", "enabled", "name", "elementType", "class"]
)
"""XStream, which reads plans, has more of them: they name other classes to make of an element."""

_FILES = {
    "filename": "the file of a CSV Data Set or listener",
    "FileSaver.filename": "a listener that writes a file",
    "File.path": "a file that is uploaded",
    "TestPlan.user_define_classpath": "a class path",
}
_SCHEME = re.compile(r"(?:https?)?|\$\{\s*__(?:P|property)\([^(){},]*(?:,\s*(?:https?)?\s*){0,2}\)\s*\}", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}")
_BACKENDS = frozenset(
    f"org.apache.jmeter.visualizers.backend.{name}"
    for name in ("graphite.GraphiteBackendListenerClient", "influxdb.InfluxdbBackendListenerClient")
)

_PROPERTIES = frozenset(
    [
        "stringProp",
        "boolProp",
        "intProp",
        "longProp",
        "floatProp",
        "doubleProp",
        "collectionProp",
        "elementProp",
        "objProp",
        "name",
        "value",
    ]
)
_STRUCTURE = frozenset(["jmeterTestPlan", "hashTree"])
_HARMLESS = frozenset(
    [
        "TestPlan",
        "ThreadGroup",
        "SetupThreadGroup",
        "PostThreadGroup",
        "OpenModelThreadGroup",
        "LoopController",
        "GenericController",
        "TransactionController",
        "IfController",
        "WhileController",
        "ForeachController",
        "OnceOnlyController",
        "InterleaveControl",
        "RandomController",
        "RandomOrderController",
        "SwitchController",
        "ThroughputController",
        "RunTime",
        "CriticalSectionController",
        "IncludeController",
        "TestFragmentController",
        "ModuleController",
        "HTTPSamplerProxy",
        "GenericSampler",
        "DebugSampler",
        "TestAction",
        "HeaderManager",
        "CookieManager",
        "CacheManager",
        "AuthManager",
        "DNSCacheManager",
        "ConfigTestElement",
        "Arguments",
        "Argument",
        "HTTPArgument",
        "HTTPFileArgs",
        "HTTPFileArg",
        "Header",
        "Cookie",
        "Authorization",
        "StaticHost",
        "CounterConfig",
        "RandomVariableConfig",
        "CSVDataSet",
        "KeystoreConfig",
        "LoginConfig",
        "ConstantTimer",
        "UniformRandomTimer",
        "GaussianRandomTimer",
        "PoissonRandomTimer",
        "ConstantThroughputTimer",
        "PreciseThroughputTimer",
        "SyncTimer",
        "ResponseAssertion",
        "DurationAssertion",
        "SizeAssertion",
        "JSONPathAssertion",
        "JmesPathAssertion",
        "XPathAssertion",
        "XPath2Assertion",
        "HTMLAssertion",
        "MD5HexAssertion",
        "XMLAssertion",
        "RegexExtractor",
        "BoundaryExtractor",
        "JSONPostProcessor",
        "JMESPathExtractor",
        "XPathExtractor",
        "XPath2Extractor",
        "HtmlExtractor",
        "RegExUserParameters",
        "UserParameters",
        "AnchorModifier",
        "URLRewritingModifier",
        "SampleTimeout",
        "ResultAction",
        "ResultCollector",
        "Summariser",
        "Backend",
        "ResultSaver",
    ]
) - {"IncludeController", "ResultSaver"}  # they read and write other files of the driver host
_SHELL = {
    "SystemSampler": "OS Process Sampler",
    "JavaSampler": "Java Request",
    "JUnitSampler": "JUnit Request",
    "ResultSaver": "Save Responses to a file",
    "IncludeController": "Include Controller",
}
_MAX_NAMED = 5


@dataclass(frozen=True)
class Parameter:
    """A property that the plan asks for with `${__P(name,default)}`; `default` None = it gives none."""

    name: str
    default: str | None


def parameters(text: str) -> list[Parameter]:
    """The plan's parameters in order, each once, with the first default that is given. Raises PlanError."""
    found: dict[str, str | None] = {}
    for said in _texts(read(text)):
        for match in _PARAMETER.finditer(said):
            name = match["p"] or match["q"]
            default = match["p_default"] if match["p"] else match["q_default"]
            if default is not None:
                default = re.sub(r"\\(.)", r"\1", default).strip()
            if found.get(name) is None:
                found[name] = default
    return [Parameter(name, default) for name, default in found.items()]


def harm(text: str) -> list[str]:
    """What in the plan may run programs or touch files on the driver host, in words; empty when nothing is known to.

    Unknown elements count as such: a plug-in can do anything. Raises PlanError when the plan cannot be read.
    """
    root = read(text)
    found: dict[str, None] = {}
    for element in root.iter("*"):
        for problem in _problems(element):
            found.setdefault(problem)
        if len(found) > _MAX_NAMED:
            break
    return list(found)[:_MAX_NAMED]


def read(text: str) -> etree._Element:
    """The plan's root. PlanError when it is no test plan, or too large, too deep, or has a DTD."""
    if len(text) > MAX_PLAN_CHARS:
        raise PlanError(f"a test plan has at most {MAX_PLAN_CHARS:,} characters, this one {len(text):,}")
    try:
        root = parse_xml(text.encode())
    except UnicodeEncodeError:
        raise PlanError("the test plan has characters that are none") from None
    if root.tag != "jmeterTestPlan":
        raise PlanError(
            f"<{str(root.tag)[:60]}> is not the beginning of a test plan",
            hint="Give the .jmx file that JMeter saved: it begins with <jmeterTestPlan>.",
        )
    depth = elements = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        elements += event == "start"
        if depth > MAX_DEPTH or elements > MAX_ELEMENTS:
            raise PlanError(f"a test plan has at most {MAX_ELEMENTS:,} elements, nested {MAX_DEPTH} deep")
    return root


def _texts(root: etree._Element) -> Iterator[str]:
    for element in root.iter("*"):
        if element.text and "${" in element.text:
            yield element.text
        for value in element.attrib.values():
            if "${" in value:
                yield str(value)


def _problems(element: etree._Element) -> Iterator[str]:
    tag = str(element.tag)
    parent = element.getparent()
    in_object = parent is not None and (
        parent.tag == "value" or any(a.tag == "objProp" for a in element.iterancestors())
    )
    if tag not in _PROPERTIES | _STRUCTURE | _HARMLESS and not (in_object and not element.attrib and not len(element)):
        yield _named(element, tag)
    yield from (f"the attribute {name} of {tag}"[:80] for name in map(str, element.attrib) if name not in _ATTRIBUTES)
    if tag == "IfController" and _said(element, "IfController.useExpression") != "true":
        yield "an If Controller with JavaScript (tick 'Interpret Condition as Variable Expression')"
    if tag == "stringProp":
        yield from _property_problems(element, str(element.get("name") or ""), (element.text or "").strip())
    for attribute, allowed in (("testclass", _HARMLESS), ("elementType", _HARMLESS), ("class", _CLASSES)):
        kind = str(element.get(attribute) or "").rpartition(".")[2]
        if kind and kind != tag and kind not in allowed:
            yield _named(element, kind)
    for said in (element.text or "", *map(str, element.attrib.values())):
        for name in _FUNCTION.findall(said):
            if not _HARMLESS_FUNCTIONS.fullmatch(name):
                yield f"the function __{name[:40]}"


def _property_problems(element: etree._Element, name: str, value: str) -> Iterator[str]:
    if not value:
        return
    parent = element.getparent()
    owner = str(parent.tag) if parent is not None else ""
    if name in ("filename", "FileSaver.filename") and owner == "ResultCollector":
        yield "a listener that writes a file (clear its Filename: BenchHub saves the results itself)"
    elif name in _FILES:
        yield _FILES[name]
    elif name == "classname" and value not in _BACKENDS:
        yield f"the class {value[:60]}"
    elif name == "HTTPSampler.protocol" and not _is_scheme(element, value):
        yield f"the protocol {value[:40]} (http, https, or a property that says which)"


def _is_scheme(element: etree._Element, value: str) -> bool:
    """Whether the protocol of a request is http or https; `file` is one to JMeter, too."""
    if match := _VARIABLE.fullmatch(value):
        root = element.getroottree().getroot()
        places = [one for one in root.iter("stringProp") if (one.text or "").strip() == match[1]]
        values = [_said(one.getparent(), "Argument.value") for one in places if one.get("name") == "Argument.name"]
        return len(values) == len(places) > 0 and all(map(_SCHEME.fullmatch, values))
    return _SCHEME.fullmatch(value) is not None


def _said(element: etree._Element | None, name: str) -> str:
    """The text of the property with that name right below the element."""
    found = [one.text or "" for one in ([] if element is None else element) if one.get("name") == name]
    return found[0].strip() if found else ""


_CLASSES = frozenset(["SampleSaveConfiguration"])


def _named(element: etree._Element, kind: str) -> str:
    name = str(element.get("testname") or "")[:60]
    what = _SHELL.get(kind, kind[:60])
    return f"{what} '{name}'" if name else what
