"""Nothing that a driver, step, server, monitor, fact, recording, form of report or reader needs can be forgotten."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.base.channel_kind import ChannelKind
from agents.base.rights import unspoken
from agents.drivers import DRIVERS
from agents.drivers.base.benchmark_tool import BenchmarkTool
from agents.drivers.base.driver import Driver
from agents.drivers.reading import FORMATS, READERS
from agents.facts import FACTS
from agents.formats.importable import IMPORTABLE
from agents.formats.report_format import form_of
from agents.monitors import MONITORS
from agents.monitors.base import Reading
from agents.profilers import PROFILERS
from agents.profilers.base.window import window_command
from agents.profiles import PROFILE_FORMATS
from agents.profiles.base.profile_format import HEAD_BYTES
from agents.profiles.reading import unpacked
from agents.readers import RESULT_READERS
from agents.readers.reading import RESULT_FORMS, guesses
from agents.recordings import RECORDINGS
from agents.servers import SERVERS
from agents.servers.base.server import Server
from agents.steps import STEPS
from agents.steps.base.step import HostStep, LaunchStep, Step
from frontend.charts.channels import COMPARED, GROUPS, KINDS
from frontend.charts.timeline import PANELS
from frontend.shared.forms.model_fields import fields_of
from tests.agents.recorded import CASES, cases

DOCS = Path(__file__).parent.parent / "docs"


def test_every_kind_has_all_that_is_asked_of_it() -> None:
    lacking = [f"{what} {name} lacks {lack}" for what, name, lacks in _walk() for lack in lacks]
    assert not lacking, "\n".join(lacking)


def test_what_a_kind_leaves_out_is_named() -> None:
    class Silent(Driver):
        kind: str = "silent"

    silent: Any = Silent  # it is abstract: that is what is missing
    assert set(_driver("silent", silent)) >= {
        "docstring",
        "formats: not said",
        "grammar: not said",
        "rate_option: not said",
        "concurrency_option: not said",
        "divided: not said",
        "not defined: command",
        "row in docs/drivers.md",
        "cases in tests/agents/cases/silent",
        "rights: not said",
    }


def test_every_row_of_the_guide_is_of_a_registered_kind() -> None:
    tables = (("step", STEPS), ("server", SERVERS), ("monitor", MONITORS), ("fact", FACTS))
    for what, kinds in tables:
        assert list(_rows("adding", what)) == sorted(kinds)
    assert list(_rows("drivers", "tool")) == sorted(DRIVERS)
    assert set(_rows("drivers", "recording")) == set(RECORDINGS)
    assert list(_rows("drivers", "reader")) == sorted(RESULT_READERS)
    assert list(_rows("profiles", "form")) == sorted(PROFILE_FORMATS)
    assert list(_rows("profiles", "profiler")) == sorted(PROFILERS)


def test_the_guide_to_security_says_what_each_kind_lets_its_author_do() -> None:
    assert rights_table() in (DOCS / "security.md").read_text()


def rights_table() -> str:
    """What docs/security.md has to say: a row for each kind that has fields of its own."""
    rows = ["| part | kind | an editor's document | an admin's only |", "| --- | --- | --- | --- |"]
    for what, registry in (("load tool", DRIVERS), ("server", SERVERS), ("step", STEPS)):
        for name, kind in sorted(registry.items()):
            kept = [kind.rights.whole] if kind.rights.whole else [gate.admin for gate in kind.rights.gates.values()]
            rows.append(f"| {what} | `{name}` | {kind.rights.does} | {'; '.join(dict.fromkeys(kept)) or 'nothing'} |")
    return "\n".join(rows)


def _walk() -> Iterator[tuple[str, str, list[str]]]:
    """What kind, its name, and what it lacks: every registry from its first line to its last."""
    walks: tuple[tuple[str, Mapping[str, object], Callable[..., Iterable[str]]], ...] = (
        ("driver", DRIVERS, _driver),
        ("step", STEPS, _step),
        ("server", SERVERS, _server),
        ("monitor", MONITORS, _monitor),
        ("fact", FACTS, _fact),
        ("recording", RECORDINGS, _recording),
        ("form of report", FORMATS, _format),
        ("reader", RESULT_READERS, _reader),
        ("form of profile", PROFILE_FORMATS, _profile),
        ("profiler", PROFILERS, _profiler),
    )
    for what, registry, lacks in walks:
        assert registry, what
        for name, kind in registry.items():
            yield what, name, list(lacks(name, kind))


def _driver(name: str, tool: type[Driver]) -> Iterator[str]:
    yield from _class(name, tool, Driver)
    yield from _unsaid(tool, ("formats", "grammar", "rate_option", "concurrency_option", "divided"))
    options = {getattr(tool, "rate_option", ""), getattr(tool, "concurrency_option", "")} - {""}
    divided = set(getattr(tool, "divided", ()))
    yield from (f"option {option}: no such field" for option in (options | divided) - set(tool.model_fields))
    whole = options - {tool.rate_option if tool.rate_is_per_connection else ""}
    yield from (f"divided: {option} makes up the load" for option in whole - divided)
    if issubclass(tool, BenchmarkTool):
        yield from _benchmark_tool(name, tool)
        return
    if name not in READERS:
        yield "reader"
    forms = {form.name for form in getattr(tool, "formats", ())}
    recorded = cases(name)
    if not recorded:
        yield f"cases in tests/agents/cases/{name}"
    yield from (f"case of {form}" for form in forms - {case.format for case in recorded})
    for case in recorded:
        found = form_of(tool.formats, case.text)
        if found.name != case.format:
            yield f"detection: {case.name} is {case.format}, not {found.name}"
    row = _rows("drivers", "tool").get(name)
    if row is None:
        yield "row in docs/drivers.md"
    else:
        yield from (f"{form} in the row in docs/drivers.md" for form in forms if f"`{form}`" not in row)


def _benchmark_tool(name: str, tool: type[BenchmarkTool]) -> Iterator[str]:
    """What a load tool lacks whose output a reader of result files reads: both are called the same."""
    yield from _unsaid(tool, ("results", "version_pattern", "install"))
    if not hasattr(tool, "results"):
        return
    results = tool.results
    if RESULT_READERS.get(name) is not results:
        yield "results: not the reader of its name"
    row = _rows("drivers", "tool").get(name)
    if row is None:
        yield "row in docs/drivers.md"
    else:
        yield from (
            f"{form.name} in the row in docs/drivers.md" for form in results.forms if f"`{form.name}`" not in row
        )


def _step(name: str, step: type[Step]) -> Iterator[str]:
    yield from _class(name, step, Step)
    yield from _unsaid(step, ("sets_clock",))
    if not issubclass(step, HostStep | LaunchStep):
        yield "HostStep or LaunchStep"
    yield from _row("step", name)
    yield from _case_files("steps", name)


def _server(name: str, server: type[Server]) -> Iterator[str]:
    yield from _class(name, server, Server)
    yield from _unsaid(server, ("title", "is_jvm", "sections"))
    if getattr(server, "is_jvm", False) and server.gc_log_path is Server.gc_log_path:
        yield "gc_log_path: it is a JVM"
    yield from _row("server", name)
    yield from _case_files("servers", name)


def _monitor(name: str, monitor: object) -> Iterator[str]:
    found = MONITORS[name]
    yield from (f"{said}: not said" for said in ("kind", "cost", "channels") if not getattr(found, said, None))
    kinds: tuple[ChannelKind, ...] = getattr(found, "channels", ())
    given: dict[str, str] = {one.name: one.unit for one in found.of_the_set}
    folder = CASES / f"monitor-{name}"
    recorded = sorted(folder.glob("*.expected.json"))
    if not recorded:
        yield f"cases in tests/agents/cases/monitor-{name}"
    for path in recorded:
        about, stem = json.loads(path.read_text()), path.name.removesuffix(".expected.json")
        texts = [(folder / f"{stem}.{which}.txt").read_text() for which in ("before", "now")]
        before, now = (Reading(about[f"{at}_at_s"], text) for at, text in zip(("before", "now"), texts, strict=True))
        given |= {channel.name: channel.unit for channel in found.samples(before, now)}
    snippet, first = found.snippet((1,)), found.before((1,))
    files = re.sub(r"\$(\w+)", lambda set_before: "" if f"{set_before[1]}=" in first else "$", snippet)
    if re.search(r"^cat .*[^\w ./*?\[\]-]", files, re.DOTALL):
        yield "snippet: what begins with cat may only name files, as all monitors share one cat"
    yield from _channels(kinds, given)
    yield from (f"case of the channel {kind.pattern}" for kind in kinds if not any(map(kind.matches, given)))
    yield from _row("monitor", name)


def _fact(name: str, fact: object) -> Iterator[str]:
    found = FACTS[name]
    if found.name != name:
        yield "name"
    recorded = cases(name)
    if not recorded:
        yield f"cases in tests/agents/cases/{name}"
    if not found.sections:
        yield "sections: not said"
    prefixes = tuple(section.prefix for section in found.sections)
    for case in recorded:
        if case.about.get("error") is None:
            value = found.parse(case.raw)
            keys = (*value.stable(), *value.volatile())
            yield from (f"section of {key}" for key in keys if not key.startswith(prefixes))
    for section in found.sections:
        yield from (f"{key}: not of {section.prefix}" for key in section.first if not key.startswith(section.prefix))
    yield from _row("fact", name)


def _recording(name: str, recording: object) -> Iterator[str]:
    found = RECORDINGS[name]
    yield from _case_files("recordings", name)
    texts = [path for path in (CASES / "recordings").glob(f"{name}-*") if not path.name.endswith(".expected.json")]
    given = {
        f"{name}.{channel}": line.unit
        for path in texts
        for channel, line in found.read(path.read_text()).channels.items()
    }
    yield from _channels(found.channels, given)
    if name not in _rows("drivers", "recording"):
        yield "row in docs/drivers.md"
    if found.recorder is not None and name not in _rows("drivers", "recorder"):
        yield "row of its recorder in docs/drivers.md"


def _format(name: str, _form: object) -> Iterator[str]:
    form = FORMATS[name]
    if name not in READERS:
        yield "reader"
    if name in IMPORTABLE:
        texts = [path.read_text() for path in sorted((CASES / name).glob("*")) if path.suffix != ".json"]
        if not texts:
            yield f"cases in tests/agents/cases/{name}"
        yield from ("detection: not of its own case" for text in texts if not form.looks_like(text))
        yield from ("report of another form" for text in texts if form.read(text).format != name)
    if f"`{name}`" not in (DOCS / "drivers.md").read_text():
        yield "name in docs/drivers.md"


def _reader(name: str, _reader: object) -> Iterator[str]:
    reader = RESULT_READERS[name]
    if reader.kind != name:
        yield "kind"
    if not reader.title:
        yield "title"
    recorded = cases(name)
    forms = {form.name for form in reader.forms}
    yield from (f"form {form}: another reader has this name" for form in forms if RESULT_FORMS[form][0] is not reader)
    yield from (f"{form}: a load tool's report has this name" for form in forms if form in FORMATS)
    yield from (f"case of {form}" for form in forms - {case.format for case in recorded})
    yield from (
        f"detection of {form}" for form in forms - {one.form for case in recorded for one in guesses(case.text)}
    )
    row = _rows("drivers", "reader").get(name)
    if row is None:
        yield "row in docs/drivers.md"
    else:
        yield from (f"{form} in the row in docs/drivers.md" for form in forms if f"`{form}`" not in row)


def _profile(name: str, _form: object) -> Iterator[str]:
    form = PROFILE_FORMATS[name]
    if form.kind != name:
        yield "kind"
    yield from (f"{said}: not said" for said in ("title", "suffix") if not getattr(form, said))
    files = [path for path in (CASES / "profiles").glob(f"{name}-*") if not path.name.endswith(".expected.json")]
    if not files:
        yield f"cases in tests/agents/cases/profiles/{name}-*"
    for path in files:
        head = unpacked(path.read_bytes())[:HEAD_BYTES]
        seen = [other.kind for other in PROFILE_FORMATS.values() if other.looks_like(head)]
        if seen != [name]:
            yield f"detection: {path.name} looks like {' and '.join(seen) or 'nothing'}"
    row = _rows("profiles", "form").get(name)
    if row is None:
        yield "row in docs/profiles.md"
    elif ("yes" in row.rsplit("|", 2)[-2]) != (form.write is not None):
        yield "row in docs/profiles.md: whether it is written"


def _profiler(name: str, _profiler: object) -> Iterator[str]:
    profiler = PROFILERS[name]
    if profiler.kind != name:
        yield "kind"
    yield from (f"{said}: not said" for said in ("title", "of", "events", "cost") if not getattr(profiler, said, None))
    if not type(profiler).__doc__:
        yield "docstring: what its weights are"
    for event in profiler.events:
        window = window_command(profiler, event, "/run/profilers", name, until_s=1.0, pids=(1,)).argv[2]
        for what, text in (("window", window), ("lacks", profiler.lacks(event)), ("after", profiler.after(event))):
            if subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False).returncode:
                yield f"{what} of {event}: no POSIX sh"
    row = _rows("profiles", "profiler").get(name)
    if row is None:
        yield "row in docs/profiles.md"
    else:
        yield from (f"{event} in the row in docs/profiles.md" for event in profiler.events if event not in row)


def _class(name: str, kind: type[Driver | Step | Server], base: type) -> Iterator[str]:
    """What every class with options needs: a sentence over its form, and everything that its base leaves open."""
    if not vars(kind).get("__doc__"):
        yield "docstring"
    if kind.model_fields["kind"].default != name:
        yield "kind"
    if inspect.isabstract(kind):
        yield from (f"not defined: {method}" for method in sorted(kind.__abstractmethods__))
    if not issubclass(kind, base):
        yield f"class from {base.__name__}"
    if not fields_of(kind, {}):
        yield "fields of its form"
    yield from _rights(kind)


def _rights(kind: type[Driver | Step | Server]) -> Iterator[str]:
    """What every class must say of its author's rights: of each field with text, what a host does with it."""
    rights = getattr(kind, "rights", None)
    if rights is None:
        yield "rights: not said"
        return
    spoken = {*rights.data, *rights.gates, *rights.free}
    yield from (f"rights: there is no field {name}" for name in sorted(spoken - set(kind.model_fields)))
    if not rights.whole:
        yield from (f"rights of {name}: not said" for name in unspoken(kind))


def _unsaid(kind: type, names: Iterable[str]) -> Iterator[str]:
    said = {name for base in kind.__mro__ if base is not ABC for name in vars(base)}
    yield from (f"{name}: not said" for name in names if name not in said)


def _channels(kinds: tuple[ChannelKind, ...], given: Mapping[str, str]) -> Iterator[str]:
    """What charts lack of these channels (name -> unit)."""
    for channel, unit in given.items():
        mine = [kind for kind in kinds if kind.matches(channel)]
        if len(mine) != 1:
            yield f"channel {channel}: {len(mine)} titles and charts"
        yield from (f"channel {channel}: unit {unit}, not {kind.unit}" for kind in mine if kind.unit != unit)
        drawn = [group for group in GROUPS.values() if re.search(group.pattern, channel)]
        if len(drawn) != 1:
            yield f"channel {channel}: {len(drawn)} charts draw it"
    for kind in kinds:
        places = {int(number) for number in re.findall(r"\{([0-9])\}", kind.title)}
        if not kind.title.strip() or places != set(range(1, re.compile(kind.pattern).groups + 1)):
            yield f"title of {kind.pattern}: it must say every group of the pattern"
        if not kind.group.label or {other.unit for other in KINDS if other.group == kind.group} != {kind.unit}:
            yield f"chart of {kind.pattern}: no label, or several units"
        if any(other.group != kind.group for other in KINDS if other.group.key == kind.group.key):
            yield f"chart of {kind.pattern}: another chart has the key {kind.group.key}"
        if kind.panel and kind.panel not in {panel["id"] for panel in PANELS}:
            yield f"panel of {kind.pattern}: there is none with this name"
        if kind.compared and not any(map(kind.matches, COMPARED)):
            yield f"{kind.pattern}: only a plain name can be compared"


def _row(what: str, name: str) -> Iterator[str]:
    if name not in _rows("adding", what):
        yield "row in docs/adding.md"


def _case_files(folder: str, name: str) -> Iterator[str]:
    if not list((CASES / folder).glob(f"{name}-*.json")):
        yield f"cases in tests/agents/cases/{folder}/{name}-*"


def _rows(page: str, what: str) -> dict[str, str]:
    """The rows of the table whose first column is headed `what`, by the name in that column."""
    text = (DOCS / f"{page}.md").read_text()
    table = re.search(rf"^\| {what} \|.*\n\| --- .*\n((?:\|.*\n)+)", text, re.MULTILINE)
    return dict(re.findall(r"^\| `([a-z0-9_-]+)` \|(.*)$", table[1], re.MULTILINE)) if table else {}
