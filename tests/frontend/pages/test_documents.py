"""Applications, recipes and workloads: the typed form and the YAML are two views of one document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.base.redaction import HIDDEN
from agents.drivers import DRIVERS
from agents.drivers.jmeter.driver import Jmeter
from agents.servers import SERVERS
from agents.spec import ApplicationDocument, WorkloadDocument
from agents.steps import STEPS
from experiments.models import Application, Member, Recipe, Role, Workload
from experiments.registry.documents.contents import SCHEMAS, content_of
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import RequestError
from frontend.pages.documents.forms import act, form_of, read_body, texts_of
from frontend.pages.documents.jmeter_plan import plan_rows
from frontend.shared.forms.model_fields import fields_of, flatten, read_fields
from tests.agents.editor_samples import SAMPLES
from tests.experiments.conftest import MakeMember, admin, make_member, stock, team
from tests.frontend.flat import flat
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "stock", "team"]

PLANS = Path(__file__).parents[2] / "agents" / "cases" / "jmx"
STEPS_BODY: dict[str, Any] = {
    "description": "Threads\nand kernel",
    "parameters": {
        "max_threads": {"type": "int", "default": 200, "minimum": 1, "maximum": 5000, "description": "Pool"},
        "mode": {"type": "str", "default": "nio", "choices": ["nio", "apr"]},
        "thp": {"type": "bool", "default": True},
        "given": {"type": "float"},
    },
    "steps": [
        {"kind": "cpu_online", "online": "0-7"},
        {"kind": "sysctl", "values": {"net.core.somaxconn": "65535", "vm.swappiness": 10}, "unsupported": "skip"},
        {"kind": "limits", "nofile": "${max_threads + 100}", "nproc": 4096},
        {
            "kind": "xml_edit",
            "path": "conf/server.xml",
            "edits": [{"op": "set", "select": "Service/Connector", "attributes": {"maxThreads": "${max_threads}"}}],
        },
        {"kind": "jvm_options", "options": ["-Xmx4g", "-XX:+UseParallelGC"]},
        {"kind": "environment", "variables": {"A": "two words", "B": "on"}},
        {"kind": "file", "path": "/etc/motd", "content": "one\n  two\n"},
        {"kind": "command", "run": "echo 1\necho 2", "undo": ":", "arguments": ["a b", "two\nlines"], "as_root": True},
    ],
}
WORKLOAD_BODY: dict[str, Any] = {
    "driver": {"kind": "wrk", "connections": 96, "threads": 8, "headers": {"Accept": "text/html"}, "latency": False},
    "path": "/status",
    "phases": [
        {"name": "warm", "kind": "warm_up", "duration_s": 5},
        {"name": "load", "kind": "measure", "duration_s": 30},
    ],
    "cpus": "2-3",
    "nofile": 65535,
}
APPLICATION_BODY: dict[str, Any] = {
    "description": "A server",
    "server": {
        "kind": "command",
        "argv": ["/usr/bin/python3", "-m", "http.server", "8080"],
        "files": {"index.html": "<p>\n", "z.txt": "a\n\n"},
        "ready": {"path": "/", "timeout_s": 5.5},
    },
}


@pytest.mark.parametrize(
    ("model", "body"), [(Recipe, STEPS_BODY), (Workload, WORKLOAD_BODY), (Application, APPLICATION_BODY)]
)
def test_a_form_gives_back_the_body_that_it_shows(model: Any, body: dict[str, Any]) -> None:
    assert read_body(SCHEMAS[model], texts_of(SCHEMAS[model], body)) == body


@pytest.mark.parametrize("kind", [*STEPS, *DRIVERS, *SERVERS])
def test_every_registered_kind_has_a_form_with_its_required_fields_first(kind: str) -> None:
    model = {**STEPS, **DRIVERS, **SERVERS}[kind]
    fields = fields_of(model, {})
    assert fields
    assert [field.required for field in fields] == sorted((field.required for field in fields), reverse=True)
    assert not {field.name for field in fields} & {"kind"}
    assert flatten(model, read_fields(model, {})) == {}


def test_a_form_shows_when_a_server_of_this_kind_is_ready_unless_told_otherwise() -> None:
    shown = {kind: {one.name: one.default for one in fields_of(SERVERS[kind], {})} for kind in ("postgresql", "nginx")}
    assert [shown[kind]["ready.probe"] for kind in shown] == ["tcp", "http"]
    assert shown["postgresql"]["ready.timeout_s"] == "60"


@pytest.mark.parametrize(
    ("action", "order"),
    [
        ("up:steps.1", [1, 0, 2]),
        ("down:steps.1", [0, 2, 1]),
        ("up:steps.0", [0, 1, 2]),
        ("remove:steps.0", [1, 2]),
        ("remove:steps.9", [0, 1, 2]),
        ("remove:description", [0, 1, 2]),
    ],
)
def test_rows_move_with_all_their_fields(action: str, order: list[int]) -> None:
    steps = [{"kind": "limits", "nofile": 100 + i} for i in range(3)]
    texts = act(texts_of(SCHEMAS[Recipe], {"steps": steps}), action)
    assert read_body(SCHEMAS[Recipe], texts)["steps"] == [steps[i] for i in order]


def test_a_step_is_added_behind_the_others() -> None:
    texts = act(
        texts_of(SCHEMAS[Recipe], {"steps": [{"kind": "limits", "nofile": 100}]}) | {"new_step": "sysctl"}, "add:steps"
    )
    assert [part.kind for part in form_of(SCHEMAS[Recipe], texts).steps] == ["limits", "sysctl"]


def test_saving_the_form_makes_a_new_version_and_leaves_the_old_one(admin: Member, stock: dict[str, Any]) -> None:
    old = stock["recipe"]
    texts = texts_of(SCHEMAS[Recipe], old.body) | {"parameters.0.default": "4096", "note": "less", "action": "save"}
    answer = signed_in(admin).post(address("edit_document", admin.team, "recipes", old.pk), texts)
    new = Recipe.objects.get(version=2)
    assert answer.headers["Location"] == address("recipe", admin.team, new.pk)
    assert (new.name, new.note, new.body["parameters"]["nofile"]["default"]) == ("limits", "less", 4096)
    old.refresh_from_db()
    assert old.body["parameters"]["nofile"]["default"] == 65535


def test_the_form_keeps_which_parameters_are_memory_and_the_page_says_it(admin: Member) -> None:
    heap = {"type": "int", "default": 256, "minimum": 64, "memory": "MiB"}
    steps = [{"kind": "jvm_options", "options": ["-Xmx${heap_mb}m"]}]
    recipe = save_version(admin, Recipe, "heap", {"parameters": {"heap_mb": heap}, "steps": steps})
    browser, edit = signed_in(admin), address("edit_document", admin.team, "recipes", recipe.pk)
    assert '<option value="MiB" selected>' in flat(browser.get(edit).content.decode())
    texts = texts_of(SCHEMAS[Recipe], recipe.body) | {"action": "save"}
    browser.post(edit, texts | {"parameters.0.memory": "KiB"})
    new = Recipe.objects.get(version=2)
    assert new.body["parameters"]["heap_mb"]["memory"] == "KiB"
    page = browser.get(address("recipe", admin.team, new.pk)).content.decode()
    assert "≥ 64, KiB of memory" in flat(page)
    browser.post(edit, texts | {"parameters.0.memory": ""})
    assert "memory" not in Recipe.objects.get(version=3).body["parameters"]["heap_mb"]


def test_saving_without_a_change_keeps_the_version(admin: Member, stock: dict[str, Any]) -> None:
    for name, model in (("recipe", Recipe), ("workload", Workload), ("application", Application)):
        document = stock[name]
        url = address("edit_document", admin.team, f"{name}s", document.pk)
        answer = signed_in(admin).post(url, texts_of(SCHEMAS[model], document.body) | {"action": "save"})
        assert answer.headers["Location"] == address(name, admin.team, document.pk)
        assert model.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"driver.connections": "17"}, "", "must be a multiple of threads"),
        ({"driver.threads": "many"}, "driver.threads", "This is a whole number"),
        ({"path": "no slash"}, "path", "It does not have the form that is needed here"),
        ({"phases.0.duration_s": "0"}, "phases.0.duration_s", "It must be at least 1."),
        ({"driver.headers": "a: [1"}, "", "not YAML"),
    ],
)
def test_a_wrong_field_of_the_form_is_named_and_nothing_is_lost(
    admin: Member, stock: dict[str, Any], change: dict[str, str], field: str, words: str
) -> None:
    document = stock["workload"]
    texts = texts_of(WorkloadDocument, document.body) | {"description": "keep me", "action": "save"} | change
    answer = signed_in(admin).post(address("edit_document", admin.team, "workloads", document.pk), texts)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert list(answer.context["field_errors"]) == ([field] if field else [])
    assert words in text
    assert "keep me" in text
    assert all(value in text for value in change.values())
    assert Workload.objects.count() == 1


def test_everything_that_is_wrong_is_said_at_once_and_at_its_field(admin: Member, stock: dict[str, Any]) -> None:
    document = stock["workload"]
    wrong = {"driver.threads": "many", "path": "no slash", "phases.0.duration_s": "0", "driver.connections": ""}
    texts = texts_of(WorkloadDocument, document.body) | {"action": "save"} | wrong
    answer = signed_in(admin).post(address("edit_document", admin.team, "workloads", document.pk), texts)
    assert set(answer.context["field_errors"]) == set(wrong)
    text = answer.content.decode()
    assert "4 things are to be changed:" in text
    assert "This must be given." in text
    assert text.count('class="field-error"') == 3  # phases are a table: what is wrong there stands above the form


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("java -jar 'my app.jar' --name=\"a b\"", ["java", "-jar", "my app.jar", "--name=a b"]),
        ("/usr/bin/server\n  --port {port}", ["/usr/bin/server", "--port", "{port}"]),
        ("echo '' \\$HOME", ["echo", "", "$HOME"]),
    ],
)
def test_a_command_line_is_parted_as_a_shell_would(typed: str, words: list[str]) -> None:
    body = read_body(ApplicationDocument, {"server.kind": "command", "server.argv": typed})
    assert body["server"]["argv"] == words
    again = texts_of(ApplicationDocument, ApplicationDocument.model_validate(body).model_dump())
    assert read_body(ApplicationDocument, again)["server"]["argv"] == words


def test_a_command_line_without_the_end_of_its_quotation_is_refused_at_its_field() -> None:
    with pytest.raises(RequestError) as refused:
        read_body(ApplicationDocument, {"server.kind": "command", "server.argv": "sh -c 'echo"})
    assert refused.value.field == "server.argv"


def test_files_have_an_editor_each_and_an_empty_one_for_the_next(admin: Member, stock: dict[str, Any]) -> None:
    document = save_version(admin, Application, "files", APPLICATION_BODY)
    client, url = signed_in(admin), address("edit_document", admin.team, "applications", document.pk)
    page = client.get(url).content.decode()
    assert 'name="server.files.0.name"' in page
    assert 'value="z.txt"' in page
    assert 'name="server.files.2.text"' in page
    texts = texts_of(ApplicationDocument, document.body) | {"action": "save"}
    more = {"server.files.2.name": "conf/own.conf", "server.files.2.text": "a = 1\r\nb = {port}\r\n"}
    client.post(url, texts | more)
    saved = Application.objects.get(name="files", version=2).body["server"]["files"]
    assert saved == APPLICATION_BODY["server"]["files"] | {"conf/own.conf": "a = 1\nb = {port}\n"}
    answer = client.post(url, texts | {"server.files.2.text": "text"})
    assert "Give the file a name." in answer.context["field_errors"].get("server.files", "")
    shown = client.get(address("application", admin.team, document.pk)).content.decode()
    assert "Any program" in shown
    assert "Files: index.html" in shown


def test_the_form_becomes_yaml_and_yaml_becomes_the_form(admin: Member, stock: dict[str, Any]) -> None:
    client, url = signed_in(admin), address("new_document", admin.team, "workloads")
    texts = texts_of(WorkloadDocument, WORKLOAD_BODY) | {"name": "status", "action": "to_yaml"}
    as_yaml = client.post(url, texts).context["yaml"]
    assert "connections: 96" in as_yaml
    back = client.post(url, {"tab": "yaml", "yaml": as_yaml, "name": "status", "action": "to_form"})
    assert back.context["tab"] == "form"
    assert 'value="96"' in back.content.decode()
    assert Workload.objects.filter(name="status").count() == 0


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        ("driver: {kind: wrk, connections: 8, threads: 8}\nphases: []", "phases"),
        ("driver: {kind: wrk, conections: 8, threads: 8}\nphases: []", "driver.connections"),
        ("a: 1\na: 2", "stands here twice"),
        ("- just\n- a list", "must be a mapping"),
        ("a: &x [*x]", "alias"),
    ],
)
def test_yaml_that_does_not_fit_is_refused_with_its_path(
    admin: Member, stock: dict[str, Any], yaml: str, words: str
) -> None:
    posted = {"name": "w", "tab": "yaml", "yaml": yaml, "action": "save"}
    answer = signed_in(admin).post(address("new_document", admin.team, "workloads"), posted)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not Workload.objects.filter(name="w").exists()


def test_yaml_is_exported_and_imported_unchanged(admin: Member, stock: dict[str, Any]) -> None:
    recipe = save_version(admin, Recipe, "all steps", {**STEPS_BODY, "parameters": {"max_threads": {"default": 8}}})
    client = signed_in(admin)
    exported = client.get(address("document_yaml", admin.team, "recipes", recipe.pk))
    assert exported.headers["Content-Disposition"] == 'attachment; filename="all-steps-v1.yaml"'
    upload = SimpleUploadedFile("recipe.yaml", exported.content)
    url = address("new_document", admin.team, "recipes")
    read = client.post(url, {"action": "import", "tab": "yaml", "file": upload, "name": "copy"})
    client.post(url, {"action": "save", "tab": "yaml", "yaml": read.context["yaml"], "name": "copy"})
    assert Recipe.objects.get(name="copy").body == recipe.body


def test_an_editor_may_not_save_shell_steps_but_keeps_what_was_typed(
    admin: Member, stock: dict[str, Any], make_member: MakeMember
) -> None:
    editor = make_member(admin.team, Role.EDITOR)
    yaml = "steps:\n- {kind: command, run: 'true', undo: 'true'}\n"
    url = address("new_document", admin.team, "recipes")
    answer = signed_in(editor).post(url, {"name": "shell", "tab": "yaml", "yaml": yaml, "action": "save"})
    assert answer.status_code == 422
    assert "only an admin" in answer.content.decode()
    assert "kind: command" in answer.content.decode()


@pytest.mark.parametrize(
    ("kind", "name"), [("recipes", "recipe"), ("workloads", "workload"), ("applications", "application")]
)
def test_pages_of_a_document_open(kind: str, name: str, admin: Member, stock: dict[str, Any]) -> None:
    client, document = signed_in(admin), stock[name]
    for url in (
        address(name, admin.team, document.pk),
        address("document_diff", admin.team, kind, document.pk),
        address("edit_document", admin.team, kind, document.pk),
        address("edit_document", admin.team, kind, document.pk) + "?tab=yaml",
        address("new_document", admin.team, kind),
        address("new_document", admin.team, kind) + f"?from={document.pk}",
    ):
        assert client.get(url).status_code == 200


def test_two_versions_are_compared_path_by_path(admin: Member, stock: dict[str, Any]) -> None:
    body = {**WORKLOAD_BODY, "path": "/other"}
    save_version(admin, Workload, "page", WORKLOAD_BODY)
    newer = save_version(admin, Workload, "page", body)
    answer = signed_in(admin).get(address("document_diff", admin.team, "workloads", newer.pk))
    assert [(d.path, d.values) for d in answer.context["differences"]] == [("path", ("/status", "/other"))]


def test_what_people_wrote_is_never_html(admin: Member, stock: dict[str, Any]) -> None:
    body = {"description": "<script>alert(1)</script>", "server": {"kind": "command", "argv": ["<b>x</b>"]}}
    document = save_version(admin, Application, "<i>name", ApplicationDocument.model_validate(body).model_dump())
    client = signed_in(admin)
    for url in (
        address("application", admin.team, document.pk),
        address("edit_document", admin.team, "applications", document.pk),
        address("edit_document", admin.team, "applications", document.pk) + "?tab=yaml",
        address("applications", admin.team),
    ):
        text = client.get(url).content.decode()
        assert "<script>alert" not in text
        assert "<b>x</b>" not in text
        assert "<i>name" not in text


def test_an_uploaded_plan_lists_its_properties_and_their_values_are_saved(admin: Member) -> None:
    client, url = signed_in(admin), address("new_document", admin.team, "workloads")
    posted = {"driver.kind": "jmeter", "driver.properties": "TIMEOUT: 500\nx.y: 1", "driver.users": "25"}
    plan = PLANS / "people.jmx"
    read = client.post(url, posted | {"action": "plan", "plan": SimpleUploadedFile(plan.name, plan.read_bytes())})
    rows = {row.property.name: row.value for row in read.context["form"].plan.rows}
    assert (rows["HOST"], rows["THREAD"], rows["TIMEOUT"], rows["RAMP"]) == ("{host}", "{users}", "500", "{ramp_up_s}")
    assert 'name="plan.DURATION" value="{duration_s}"' in flat(read.content.decode())
    texts = texts_of(WorkloadDocument, {"driver": {"kind": "jmeter"}, "phases": WORKLOAD_BODY["phases"]})
    texts |= {"driver.users": "25", "driver.properties": "x.y: 1", "driver.jmx": plan.read_text()}
    texts |= {f"plan.{name}": value for name, value in rows.items()} | {"plan.TIMEOUT": "250", "plan.RAMP": ""}
    client.post(url, texts | {"name": "people", "action": "save"})
    saved = Workload.objects.get(name="people")
    assert saved.body["driver"]["properties"] == {
        "x.y": 1, "LOOPS": "{loops}", "THREAD": "{users}", "DURATION": "{duration_s}", "HOST": "{host}",
        "PORT": "{port}", "PROTO": "{scheme}", "TIMEOUT": 250,
    }  # fmt: skip
    shown = client.get(address("workload", admin.team, saved.pk)).content.decode()
    assert "Properties of the test plan" in shown
    again = texts_of(WorkloadDocument, saved.body) | {"action": "save"}
    client.post(address("edit_document", admin.team, "workloads", saved.pk), again)
    assert Workload.objects.filter(name="people").count() == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"<a/>", "not the beginning of a test plan"), (b"\xff\xfe", "not UTF-8"), (None, "Choose a")],
)
def test_a_file_that_is_no_plan_is_refused_and_the_form_stays(admin: Member, content: bytes | None, words: str) -> None:
    posted: dict[str, Any] = {"driver.kind": "jmeter", "description": "keep me", "action": "plan"}
    if content is not None:
        posted["plan"] = SimpleUploadedFile("x.jmx", content)
    answer = signed_in(admin).post(address("new_document", admin.team, "workloads"), posted)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert "keep me" in answer.content.decode()


def test_the_default_and_the_value_of_a_secret_are_not_shown(admin: Member) -> None:
    plan = '<jmeterTestPlan><hashTree><DebugSampler testname="${__P(db.password,tiger)}"/></hashTree></jmeterTestPlan>'
    driver = {"kind": "jmeter", "jmx": plan, "properties": {"db.password": "lion"}}
    saved = save_version(admin, Workload, "secret", {"driver": driver, "phases": WORKLOAD_BODY["phases"]})
    read = content_of(saved).driver
    assert isinstance(read, Jmeter)
    assert [(row.property.default, row.value) for row in plan_rows(read)] == [(None, HIDDEN)]
    page = signed_in(admin).get(address("edit_document", admin.team, "workloads", saved.pk)).content.decode()
    assert 'type="password"' in page.partition('name="plan.db.password"')[2].partition(">")[0]


@pytest.mark.parametrize("kind", ["applications", "recipes", "workloads"])
def test_an_archived_name_is_listed_apart_and_its_page_puts_it_back(
    kind: str, admin: Member, stock: dict[str, Any]
) -> None:
    client, document = signed_in(admin), stock[kind.removesuffix("s")]
    listed, archive = address(kind, admin.team), address("archive_document", admin.team, kind, document.pk)
    assert "?archived=1" not in client.get(listed).content.decode()
    client.post(archive)
    left = client.get(listed).content.decode()
    assert (f"{document.name}</a>" in left, "?archived=1" in left) == (False, True)
    assert f"{document.name}</a>" in client.get(f"{listed}?archived=1").content.decode()
    page = address(kind.removesuffix("s"), admin.team, document.pk)
    assert "Unarchive" in client.get(page).content.decode()
    assert "is back in the lists" in client.post(archive, follow=True).content.decode()
    assert f"{document.name}</a>" in client.get(listed).content.decode()
    assert "Unarchive" not in client.get(page).content.decode()


def document_of(room: str, body: dict[str, Any]) -> tuple[type[Application | Recipe | Workload], dict[str, Any]]:
    phases = [{"name": kind, "kind": kind, "duration_s": 30} for kind in ("warm_up", "measure")]
    if room == "driver":
        asks = DRIVERS[body["kind"]].model_validate(body).reaches == "http"
        return Workload, {"driver": body, "phases": phases} | ({"path": "/a?b=c"} if asks else {})
    return (Application, {"server": body}) if room == "server" else (Recipe, {"steps": [body]})


@pytest.mark.parametrize(
    ("room", "kind", "body"),
    [
        pytest.param(room, kind, body, id=f"{room}-{kind}")
        for room, _, samples in SAMPLES
        for kind, body in samples.items()
    ],
)
def test_every_kind_has_a_page(admin: Member, room: str, kind: str, body: dict[str, Any]) -> None:
    model, document = document_of(room, {"kind": kind} | body)
    saved = save_version(admin, model, "one", document)
    client = signed_in(admin)
    page = f"/t/perf/{model.__name__.lower()}s/{saved.pk}/"
    assert [client.get(f"{page}{tab}").status_code for tab in ("", "edit/", "yaml")] == [200, 200, 200]


@pytest.mark.parametrize(
    ("driver", "target", "command"),
    [
        (
            {"kind": "pgbench", "clients": 4, "jobs": 2},
            "tcp://SUT:PORT",
            "pgbench -n -h SUT -p PORT -U bench -c 4 -j 2 -T 30 -M simple -b tpcb-like bench",
        ),
        ({"kind": "sysbench"}, "the driver host itself", "sysbench cpu --threads=1 --time=30"),
    ],
    ids=["pgbench", "sysbench"],
)
def test_the_page_of_a_tool_without_pages_shows_what_it_loads(
    admin: Member, driver: dict[str, Any], target: str, command: str
) -> None:
    _, body = document_of("driver", driver)
    workload = save_version(admin, Workload, "load", body)
    page = signed_in(admin).get(f"/t/perf/workloads/{workload.pk}/").content.decode()
    assert f"<code>{target}</code>" in page
    assert command in page
    assert "http://SUT" not in page


def test_the_page_of_a_command_shows_where_address_and_port_go(admin: Member, stock: dict[str, Any]) -> None:
    argv = ["pgbench", "-h", "{host}", "-p", "{port}", "-T", "{duration_s}", "{url}"]
    _, body = document_of("driver", {"kind": "command", "argv": argv})
    workload = save_version(admin, Workload, "pgbench", body)
    page = signed_in(admin).get(f"/t/perf/workloads/{workload.pk}/").content.decode()
    assert "pgbench -h SUT -p PORT -T 30 &#x27;http://SUT:PORT/a?b=c&#x27;" in page
