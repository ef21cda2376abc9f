"""The library that BenchHub ships: every document is valid, fits a team, and plans hold on large and small hosts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.facts.lscpu import parse as parse_lscpu
from agents.plan import build_plan
from agents.running.explained_differences import explained_by
from agents.spec import RunSpec
from agents.steps.base.step import State
from agents.steps.recipe import Value
from agents.steps.sysctl import SysctlStep
from experiments.asking.launching.choices import choice_with, freeze
from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import ExperimentTemplate, Scale
from experiments.asking.library.families import entries
from experiments.asking.library.fit import fits
from experiments.asking.library.install import Installed, Places, create, install, installed
from experiments.asking.library.published import import_published
from experiments.asking.tunings.space import default_of, read_space, space_of
from experiments.models import Application, HardwareProfile, Host, Member, Recipe, Role, Run, Team, TimerTable, Workload
from experiments.registry.documents.configuration import diff
from experiments.registry.errors import Forbidden, NotFound, RequestError
from experiments.registry.metrics.vocabulary import METRICS
from tests.experiments.conftest import MakeMember, ready_host

LSCPU = Path(__file__).parents[2] / "agents" / "cases" / "lscpu"
PLACES: dict[str, Value] = {
    "tomcat_home": "/opt/tomcat",
    "liberty_home": "/opt/wlp",
    "rest_war": "/opt/rest.war",
    "jmeter_home": "/opt/jmeter",
    "node_entry": "/opt/node/server.js",
    "shop_entry": "/opt/node/shop.js",
    "repository": "https://git.example.com/shop.git",
    "artefact": "target/shop.jar",
}
SCALES: tuple[Scale, ...] = ("small", "published")
NAMES = catalogue.names("experiments")


def given(template: ExperimentTemplate, **more: Value) -> dict[str, Value]:
    return {name: value for name, value in (PLACES | more).items() if name in template.settings()}


def profiled(member: Member, name: str, roles: str, facts: dict[str, str]) -> Host:
    host = ready_host(member, name, roles=roles)
    digest = f"{abs(hash(name)):064d}"[:64]
    host.profile = HardwareProfile.objects.create(team=member.team, digest=digest, facts=facts)
    host.save()
    found: Host = Host.objects.with_state().get(pk=host.pk)
    return found


ARM64 = parse_lscpu((LSCPU / "seed-grace.txt").read_bytes()).stable() | {
    "cpu.online": "0-7",
    "cpu.offline": "8-143",
    "memory.total_bytes": str(480 << 30),
    "java.path.version": "25.0.1",
}
LAB = {
    "cpu.architecture": "x86_64",
    "cpu.online": "0-1",
    "memory.total_bytes": str(4 << 30),
    "java.path.version": "17.0.15",
    "java.installed./usr/lib/jvm/java-21": "21.0.8+9 Debian",
}


def two_kernels(places: Places) -> Places:
    """The same two servers, each with a kernel of its own."""
    for host, release in ((places.sut, "5.14.0-570"), (places.other_sut, "6.8.0-60")):
        assert host is not None
        assert host.profile is not None
        host.profile.facts = host.profile.facts | {"kernel.release": release}
    return places


def further(admin: Member, facts: dict[str, str]) -> dict[str, Host]:
    """A host for each member of every shipped system."""
    roles = {role for name in NAMES for role in catalogue.template(name).roles}
    return {role: profiled(admin, role, "sut", facts) for role in sorted(roles)}


@pytest.fixture
def arm64(admin: Member) -> Places:
    hosts = [profiled(admin, name, role, ARM64) for name, role in (("a", "sut"), ("b", "sut"), ("c", "driver"))]
    return Places(hosts[0], (hosts[2],), hosts[1], further(admin, ARM64))


@pytest.fixture
def lab(admin: Member) -> Places:
    hosts = [profiled(admin, name, role, LAB) for name, role in (("x", "sut"), ("y", "sut"), ("z", "driver"))]
    return Places(hosts[0], (hosts[2],), hosts[1], further(admin, LAB))


@pytest.mark.parametrize("kind", ["applications", "recipes", "workloads", "experiments", "tunings", "recorded"])
def test_everything_that_is_shipped_is_read_and_names_its_source(kind: str) -> None:
    read = {
        "applications": catalogue.application,
        "recipes": catalogue.recipe,
        "workloads": catalogue.workload,
        "experiments": catalogue.template,
        "tunings": catalogue.tuning,
        "recorded": catalogue.recorded,
    }[kind]
    names = catalogue.names(kind)
    assert names
    titles = [read(name).title for name in names]
    assert len(set(titles)) == len(titles)
    assert all(read(name).source for name in names)


def test_a_family_has_one_question_and_each_of_its_templates_another_choice() -> None:
    families: dict[str, list[catalogue.Family]] = {}
    for one in catalogue.templates():
        if one.family:
            families.setdefault(one.family.title, []).append(one.family)
    for members in families.values():
        assert len({(one.question, tuple(one.choices)) for one in members}) == 1
        assert len({tuple(one.choices.values()) for one in members}) == len(members) > 1
    assert [line.title for line in entries(catalogue.templates())].count("Two machines, REST") == 1


@pytest.mark.parametrize("name", catalogue.names("recipes"))
def test_a_shipped_recipe_resolves_with_its_defaults_and_reserves_no_value(name: str) -> None:
    shipped = catalogue.recipe(name)
    values = {key: setting.at("small") or PLACES[key] for key, setting in shipped.settings.items()}
    document = shipped.filled_in(values)
    missing: dict[str, Value] = {key: "0" for key, one in document.parameters.items() if one.default is None}
    steps = document.resolve(missing, built_in={"sut_cpu_count": 8})
    assert steps
    assert document.description
    assert {one.field for step in steps for one in step.reserved()} <= {"kind"}


@pytest.mark.parametrize("name", catalogue.names("tunings"))
def test_a_shipped_space_fits_its_recipe_begins_at_its_defaults_and_says_what_is_unsafe(name: str) -> None:
    shipped = catalogue.tuning(name)
    document, wanted = catalogue.recipe(shipped.variants[0].recipe).document, read_space(shipped.space)
    space, default = space_of(wanted, document), default_of(wanted, document, {})
    space.check(default)
    for one in space.parameters:
        for value in one.choices or (one.at(0.0), one.at(1.0)):
            assert document.resolve({**default, one.name: value}, built_in={"sut_cpu_count": 8})
    assert catalogue.known_space(shipped.recipe_title) == shipped.space
    assert shipped.unsafe
    assert name not in NAMES
    assert set(shipped.limits) <= set(METRICS)


def test_every_work_has_an_experiment_and_every_part_is_used_or_stands_for_itself() -> None:
    assert {work for name in NAMES for work in catalogue.template(name).works} == set(catalogue.WORKS)
    used = {(kind, item.name) for name in NAMES for kind, item in catalogue.parts_of(catalogue.template(name))}
    for kind in ("application", "workload"):
        assert {name for have, name in used if have == kind} | {"hello-wrk2"} >= set(catalogue.names(f"{kind}s"))
    for name in NAMES:
        assert catalogue.template(name).metric in {"", *METRICS}


CONNECTOR = "tomcat.server_xml.Server/Service/Connector"
EXECUTOR = "tomcat.server_xml.Server/Service/Executor"
ACCESS_LOG = "tomcat.server_xml.Server/Service/Engine/Host/Valve@className"
HTTP2 = f"{CONNECTOR}/UpgradeProtocol@className"
LIMITS = ("maxThreads", "minSpareThreads", "maxKeepAliveRequests", "maxConnections")
THREADS = {f"{CONNECTOR}@{name}" for name in LIMITS}
POOL = {f"{EXECUTOR}@{name}" for name in ("name", "maxThreads", "minSpareThreads")}
IN_POOL = {f"{CONNECTOR}@{name}" for name in ("protocol", "executor", "maxConnections", "acceptCount")}
JVM = {"jvm.flags.MaxHeapSize", "jvm.flags.MaxNewSize"}
OPTION = {"jvm.arguments.jvm_options[0]", "process.arguments[0]"}
KEYS = {f"sysctl.net.{key}" for key in ("core.somaxconn", "ipv4.tcp_fin_timeout", "ipv4.tcp_tw_reuse")}
NOBODY_ASKED = {
    *("sysctl.vm.swappiness", "cpu.online", "kernel.release", "power.governor", "java.path.version"),
    *("process.limits.nofile", "process.limits.nproc", "process.environment.LANG", f"{CONNECTOR}@port", HTTP2),
    *("tomcat.server_xml.Server/Service/Engine@jvmRoute", f"{CONNECTOR}@sslImplementationName"),
}
# What each variant changes against the baseline of its experiment; that of two machines is the machine alone.
ASKED: dict[str, dict[str, set[str]]] = {
    "cpu-scaling": {f"{cpus} CPUs": {"process.cpus"} for cpus in (2, 4, 8)},
    "jvm-memory": {"memory flags": JVM | OPTION, "flags with PermSize": JVM | OPTION},
    "liberty-virtual-threads": {"virtual threads": OPTION},
    "linux-18-keys-50": {"18 keys": KEYS},
    "tomcat-baseline": {"access log off": {ACCESS_LOG}, "request threads = CPUs": THREADS | {ACCESS_LOG}},
    "tomcat-baseline-wrk2": {"access log off": {ACCESS_LOG}, "7 request threads": THREADS | {ACCESS_LOG}},
    "tomcat-connectors-50": {"NIO2": {f"{CONNECTOR}@protocol"}, "NIO with executor": POOL | IN_POOL},
    "tomcat-http2-tls": {"HTTP/2, access log off": {ACCESS_LOG}},
    "liberty-two-kernels": {f"virtual threads, {nth} server": OPTION for nth in ("first", "second")},
    "linux-18-keys-two-systems": {f"{nth} server, 18 keys": KEYS for nth in ("first", "second")},
    "tomcat-keep-alive": {"500000 requests": {f"{CONNECTOR}@maxKeepAliveRequests"}},
    "tomcat-virtual-threads": {"virtual threads": {f"{CONNECTOR}@useVirtualThreads"}},
}
ASKED |= {
    "cpu-scaling-best-load": ASKED["cpu-scaling"],
    "cpu-scaling-think-time": ASKED["cpu-scaling"],
    "linux-18-keys-200": ASKED["linux-18-keys-50"],
    "tomcat-connectors-200": ASKED["tomcat-connectors-50"],
    "rest-store": {"memcached": OPTION},
    "rest-store-https": {"memcached": OPTION},
}
SETTINGS = "postgresql.settings."
COMMITS = {"the newest commit": {"build.commit"}}
ASKED |= {f"build-{tool}": COMMITS for tool in ("cargo", "gradle", "make", "maven", "npm")}
ASKED |= {
    f"build-{tool}-elsewhere": {"the newest commit": {"members.builder.build.commit"}} for tool in ("make", "maven")
}
ASKED |= {
    "jvm-class-data": {"not shared": JVM | OPTION},
    "jvm-collectors": dict.fromkeys(("Parallel", "ZGC", "Shenandoah"), JVM | OPTION),
    "jvm-compact-headers": {"8 bytes": JVM | OPTION},
    "jvm-heap": dict.fromkeys(("64 MiB", "512 MiB"), JVM | OPTION),
    "nginx-keep-alive": {name: {"nginx.conf.http.keepalive_requests"} for name in ("10 requests", "no limit")},
    "nginx-sendfile": {
        "sendfile off": {"nginx.conf.http.sendfile"},
        "sendfile and tcp_nopush on": {"nginx.conf.http.tcp_nopush"},
    },
    "nginx-tls": {"TLS 1.2": {"nginx.conf.http.ssl_protocols"}},
    "nginx-workers": {"2 workers": {"nginx.conf.worker_processes"}},
    "node-workers": {f"cluster of {count}": {"process.environment.WEB_CONCURRENCY"} for count in (1, 2)},
    "postgresql-commit": {"commit does not wait": {f"{SETTINGS}synchronous_commit"}},
    "postgresql-commit-at-a-rate": {"commit does not wait": {f"{SETTINGS}synchronous_commit"}},
    "postgresql-huge-pages": {"huge pages": {f"{SETTINGS}huge_pages", "sysctl.vm.nr_hugepages"}},
    "postgresql-jit": {
        "jit on": {f"{SETTINGS}jit"},
        "jit of every query": {f"{SETTINGS}jit", f"{SETTINGS}jit_above_cost"},
    },
    "postgresql-shared-buffers": {name: {f"{SETTINGS}shared_buffers"} for name in ("16 MB", "256 MB")},
    "redis-io-threads": {"2 threads": {"redis.settings.io-threads"}},
    "three-tier": {
        "proxy, 2 workers": {"nginx.conf.worker_processes"},
        "application, 2 processes": {"members.app.process.environment.WEB_CONCURRENCY"},
        "database, 16 MB of buffers": {f"members.database.{SETTINGS}shared_buffers"},
    },
}
# The same with a profiled twin of each run.
ASKED["functions-access-log"] = {"access log off": ASKED["tomcat-baseline"]["access log off"]}
for name, like in (
    ("virtual-threads", "tomcat-virtual-threads"),
    ("collectors", "jvm-collectors"),
    ("tls", "nginx-tls"),
):
    ASKED[f"functions-{name}"] = ASKED[like]
PATHS = {path for changes in ASKED.values() for changed in changes.values() for path in changed} | NOBODY_ASKED
# Another application may explain whatever belongs to the server, and nothing of its host.
ASKED["cpu-instances"] = {"two instances": {path for path in PATHS if path.startswith(("tomcat.", "process.", "jvm."))}}
for name, begins, variants in (
    ("functions-json", "node.", ("64 MiB",)),
    ("node-young-generation", "node.", ("1 MiB", "64 MiB")),
    ("redis-persistence", "redis.", ("append-only, once a second", "append-only, each command", "snapshots")),
):
    own = {path for path in PATHS if path.startswith((begins, "process.", "jvm."))}
    ASKED[name] = dict.fromkeys(variants, own)


def named_changes(specs: Sequence[RunSpec]) -> set[str]:
    """What the configuration diff calls asked when everything differs."""
    found = diff([dict.fromkeys(PATHS, "one"), dict.fromkeys(PATHS, "other")], asked=explained_by(specs))
    assert {one.path for one in (*found.asked, *found.drift)} == PATHS
    return {one.path for one in found.asked}


@pytest.mark.django_db
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", NAMES)
def test_a_template_becomes_an_experiment_whose_plan_holds_on_a_many_core_arm64_host(
    name: str, scale: Scale, admin: Member, arm64: Places
) -> None:
    template = catalogue.template(name)
    experiment = create(admin, install(admin, template, scale, given(template)), arm64)
    assert experiment.variants.count() == len(template.variants_at(scale))
    assert tuple(experiment.profilers) == template.profilers
    first, *_ = template.variants_at(scale)
    assert experiment.variants.get(is_baseline=True).name == first.name
    specs: dict[str, RunSpec] = {}
    for variant in experiment.variants.select_related("application", "recipe", "sut__profile", "drivers"):
        spec = specs[variant.name] = freeze(choice_with(variant, experiment.workload))
        plan = build_plan(spec)
        notes = [item.note for phase in plan.phases for item in phase.items]
        assert not [note for note in notes if note.startswith("Will fail")]
        assert plan.load_s >= sum(phase.duration_s for phase in spec.workload.phases)
    baseline = specs.pop(first.name)
    changed = {variant: named_changes([baseline, spec]) for variant, spec in specs.items()}
    wanted = ASKED.get(name, {})
    if template.concurrency:  # the load belongs to no configuration: "2 CPUs, 32 connections" changes the CPUs
        wanted = {variant: wanted.get(variant.partition(", ")[0], set()) for variant in specs}
    assert changed == {variant: wanted.get(variant, set()) for variant in specs}
    assert all(changed.values()) or template.two_suts or template.concurrency
    assert [one for one in fits(template, scale, arm64, {}) if one.result == "fail"] == []


@pytest.mark.django_db
@pytest.mark.parametrize("name", NAMES)
def test_at_the_small_scale_a_template_fits_the_lab_or_says_what_is_missing(
    name: str, admin: Member, lab: Places
) -> None:
    template = catalogue.template(name)
    create(admin, install(admin, template, "small", given(template)), lab)
    found = [one.sentence for one in fits(template, "small", lab, {}) if one.result == "fail"]
    expected = []
    if template.needs.cpus > 2:
        expected.append("x has 2 CPUs, this needs 8: choose a larger host.")
    if template.needs.java > 17:
        java = "has Java 17 on its PATH, this needs 21: set java_home to /usr/lib/jvm/java-21 (Java 21)."
        if template.needs.java > 21:
            java = "has Java 17 on its PATH, this needs 25: install it, and set java_home if it is not on the PATH."
        expected += [f"{host} {java}" for host in (("x", "y") if template.two_suts else ("x",))]
    assert found == expected


@pytest.mark.django_db
def test_what_does_not_fit_is_said_with_numbers_and_with_what_to_do(admin: Member, lab: Places) -> None:
    template = catalogue.template("cpu-scaling")
    found = [one.sentence for one in fits(template, "published", lab, {})]
    assert found[0] == "x has 2 CPUs, this needs 8: choose the small scale."
    assert "z must have wrk; each run looks first, and names the package when it is missing." in found
    two = catalogue.template("rest-two-machines")
    sentences = [one.sentence for one in fits(two, "small", lab, {})]
    assert "Both servers have architecture x86_64, so this compares two machines and nothing else." in sentences
    kernels = [one.sentence for one in fits(catalogue.template("liberty-two-kernels"), "small", two_kernels(lab), {})]
    assert "The servers differ in kernel (5.14.0-570 / 6.8.0-60)." in kernels
    alone = fits(two, "small", Places(lab.sut, lab.drivers), {})
    assert "This compares two servers: choose another host for the second one." in [one.sentence for one in alone]


def test_the_18_kernel_keys_are_the_published_ones_and_those_a_kernel_lacks_are_skipped() -> None:
    step = catalogue.recipe("linux-network-18-keys").document.resolve({})[1]
    assert isinstance(step, SysctlStep)
    assert len(step.values) == 18
    gone = {"net.ipv4.tcp_tw_recycle"}
    before: State = {**{key: None if key in gone else "1" for key in step.values}, "read-only": ""}
    after: State = {**before, **{key: value for key, value in step.values.items() if key not in gone}}
    results = {one.setting: one.result for one in step.outcomes(before, after)}
    assert results["net.ipv4.tcp_tw_recycle"] == "unsupported"
    assert results["net.core.somaxconn"] == "applied"
    assert results["net.ipv4.tcp_tw_reuse"] == "unchanged"


@pytest.mark.django_db
def test_installing_twice_changes_nothing_and_another_setting_is_a_new_version(admin: Member) -> None:
    template = catalogue.template("tomcat-baseline")
    first = install(admin, template, "small", given(template))
    again = install(admin, template, "small", given(template))
    assert (again.workload, again.applications, again.recipes) == (first.workload, first.applications, first.recipes)
    other = install(admin, template, "small", given(template, connections=64))
    assert (other.workload.version, other.workload.body["driver"]["connections"]) == (2, 64)
    assert other.applications["tomcat-examples"].version == 1
    newest = installed(admin, template, "small")
    assert newest is not None
    assert newest.workload == other.workload


@pytest.mark.django_db
def test_an_empty_setting_takes_its_line_out(admin: Member) -> None:
    template = catalogue.template("tomcat-baseline")
    without = install(admin, template, "small", given(template)).applications["tomcat-examples"]
    assert without.body["server"]["java_home"] is None
    with_one = install(admin, template, "small", given(template, java_home="/usr/lib/jvm/java-21"))
    assert with_one.applications["tomcat-examples"].body["server"]["java_home"] == "/usr/lib/jvm/java-21"


REFUSED: tuple[tuple[dict[str, Value], str, str], ...] = (
    ({}, "settings.tomcat_home", "Where Tomcat 11 is unpacked on the SUT"),
    ({"tomcat_home": "/opt/t", "conections": 5}, "settings.conections", "has no setting 'conections'"),
    ({"tomcat_home": "/opt/t", "connections": 0}, "settings.connections", "below the minimum 1"),
    ({"tomcat_home": "/opt/t", "connections": "five"}, "settings.connections", "is not of type int"),
)


@pytest.mark.django_db
@pytest.mark.parametrize(("settings", "field", "words"), REFUSED)
def test_a_setting_that_does_not_fit_is_named_and_nothing_is_saved(
    settings: dict[str, Value], field: str, words: str, admin: Member
) -> None:
    with pytest.raises(RequestError) as refused:
        install(admin, catalogue.template("tomcat-baseline"), "small", settings)
    assert refused.value.field == field
    assert words in refused.value.message
    assert not any(model.objects.exists() for model in (Application, Recipe, Workload))


@pytest.mark.django_db
@pytest.mark.parametrize(("role", "may"), [(Role.VIEWER, False), (Role.LAUNCHER, False), (Role.EDITOR, True)])
def test_installing_needs_the_role_that_saving_needs(
    role: Role, may: bool, team: Team, make_member: MakeMember
) -> None:
    member = make_member(team, role)
    template = catalogue.template("tomcat-baseline")
    if may:
        assert isinstance(install(member, template, "small", given(template)), Installed)
    else:
        with pytest.raises(Forbidden):
            install(member, template, "small", given(template))


@pytest.mark.django_db
def test_an_editor_installs_a_system_whose_members_name_each_other(team: Team, make_member: MakeMember) -> None:
    template = catalogue.template("three-tier")
    ready = install(make_member(team, Role.EDITOR), template, "small", given(template))
    assert ready.applications["three-tier-shop"].body["server"]["proxy_to"] == ["${app.address}:${app.port}"]


@pytest.mark.django_db
def test_each_further_member_of_a_template_needs_a_host(admin: Member, lab: Places) -> None:
    template = catalogue.template("three-tier")
    ready = install(admin, template, "small", given(template))
    with pytest.raises(RequestError, match="each further member: app") as refused:
        ready.candidates(Places(lab.sut, lab.drivers, members={"database": lab.members["database"]}))
    assert refused.value.field == "members"
    (first, *_) = ready.request_body(lab)["variants"]
    assert first["members"] == {"database": "database", "app": "app"}
    assert "app must have Node.js; without it a run fails and says so." in [
        one.sentence for one in fits(template, "small", lab, {})
    ]


@pytest.mark.parametrize("name", ["nothing-of-the-kind", "../recipes/tomcat-default", "", "Tomcat-baseline"])
def test_a_name_that_is_not_in_the_library_is_not_found(name: str) -> None:
    with pytest.raises(NotFound):
        catalogue.template(name)


@pytest.mark.django_db
def test_the_published_figures_become_runs_and_the_first_two_are_invalid_with_the_arithmetic(admin: Member) -> None:
    runs = import_published(admin, catalogue.recorded("tomcat-baseline"))
    assert [run.throughput_rps for run in runs] == [50517.09, 59451.85, 154479.07]
    assert [run.validity for run in runs][:2] == ["invalid", "invalid"]
    assert runs[2].validity != "invalid"
    assert all(run.hides_latency for run in runs)
    sentences = json.dumps(runs[0].findings)
    assert "1280" in sentences or "1,280" in sentences
    assert "25" in sentences
    assert len({run.fingerprint for run in runs}) == 1
    assert {run.recipe.name for run in runs if run.recipe} == {
        "8 CPUs, Tomcat default",
        "8 CPUs, access log off",
        "8 CPUs, access log off, 7 request threads",
    }
    assert import_published(admin, catalogue.recorded("tomcat-baseline")) == runs
    assert Run.objects.count() == 3


@pytest.mark.django_db
@pytest.mark.parametrize("name", catalogue.names("recorded"))
def test_every_published_report_is_read(name: str, admin: Member) -> None:
    runs = import_published(admin, catalogue.recorded(name))
    recorded = catalogue.recorded(name)
    assert all(run.outcome == Run.Outcome.SUCCEEDED and run.metrics[recorded.metric] for run in runs)
    timers = [name for report in recorded.reports for name in report.timers]
    assert sorted(TimerTable.objects.values_list("name", flat=True)) == sorted(timers)
