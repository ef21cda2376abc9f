"""New application, recipe or workload, and a new version of one: a typed form and a YAML editor of the same thing."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from agents.drivers.jmeter.jmx import MAX_PLAN_CHARS
from agents.steps import STEPS
from experiments.models import Role
from experiments.registry.documents.versions import save_version
from experiments.registry.documents.yaml_text import MAX_CHARS, dump_yaml, parse_yaml
from experiments.registry.errors import Forbidden, RequestError
from frontend.pages.documents.forms import (
    MEMORY_UNITS,
    PARAMETER_TYPES,
    PHASE_KINDS,
    DocumentForm,
    act,
    form_of,
    read_body,
    texts_of,
)
from frontend.pages.documents.jmeter_plan import with_plan
from frontend.pages.documents.views import get_document
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.document_kinds import KINDS, Kind
from frontend.shared.forms.model_fields import label_of
from frontend.shared.forms.uploads import text_of
from frontend.shared.query import id_in

STARTS: dict[str, dict[str, str]] = {
    "applications": {"server.kind": "tomcat"},
    "recipes": {},
    "workloads": {
        "driver.kind": "wrk2",
        "phases.0.name": "warm up",
        "phases.0.kind": "warm_up",
        "phases.0.duration_s": "10",
        "phases.1.name": "measure",
        "phases.1.kind": "measure",
        "phases.1.duration_s": "60",
    },
}


@require_http_methods(["GET", "POST"])
@team_view(role=Role.EDITOR)
def document_new(request: TeamRequest, kind: str) -> HttpResponseBase:
    """A new name; `?from=<id>` copies another one."""
    of = KINDS[kind]
    source = id_in(request.GET.get("from", ""))
    texts = texts_of(of.schema, get_document(request, of, source).body) if source is not None else STARTS[kind]
    return _editor(request, of, name="", texts=texts)


@require_http_methods(["GET", "POST"])
@team_view(role=Role.EDITOR)
def document_edit(request: TeamRequest, kind: str, pk: int) -> HttpResponseBase:
    """A new version of a name, starting from the version that was opened."""
    of = KINDS[kind]
    document = get_document(request, of, pk)
    return _editor(request, of, name=document.name, texts=texts_of(of.schema, document.body), base=str(document))


def _editor(request: TeamRequest, of: Kind, *, name: str, texts: dict[str, str], base: str = "") -> HttpResponseBase:
    """The page on GET. On POST `action` is save, to_yaml, to_form, import, plan, refresh, or a row button's."""
    posted = {key: str(value) for key, value in request.POST.items()}
    action = posted.get("action", "save")
    tab = posted.get("tab", "form")
    text, error = posted.get("yaml", ""), None
    name = name or posted.get("name", "").strip()
    if request.method == "POST":
        texts = posted
        try:
            if action == "import":
                tab, text = "yaml", _imported(request)
            elif action == "plan":
                texts = with_plan(texts, _file(request, "plan", "a test plan (.jmx)", MAX_PLAN_CHARS))
            elif action == "to_yaml":
                text, tab = dump_yaml(read_body(of.schema, texts)), "yaml"
            elif action == "to_form":
                texts, tab = _form_texts(of, parse_yaml(text)), "form"
            elif action == "save":
                body = parse_yaml(text) if tab == "yaml" else read_body(of.schema, texts)
                saved = save_version(request.member, of.model, name, body, note=posted.get("note", ""))
                messages.success(request, f"{saved} is saved.")
                return redirect(of.singular, request.team.slug, saved.pk)
            else:
                texts = act(texts, action)
        except (RequestError, Forbidden) as problem:
            error = problem
    elif request.GET.get("tab") == "yaml":
        text, tab = _start_yaml(of, texts), "yaml"
    context = {
        "kind": of,
        "name": name,
        "base": base,
        "tab": tab,
        "note": posted.get("note", ""),
        "yaml": text,
        "error": error,
        "step_kinds": {kind: label_of(kind) for kind in STEPS},
        "parameter_types": PARAMETER_TYPES,
        "memory_units": MEMORY_UNITS,
        "phase_kinds": PHASE_KINDS,
        "scope": of.plural,
    }
    if tab == "form":
        form = form_of(of.schema, texts)
        context |= {"form": form, "field_errors": _located(form, error) if error else {}}
    status = 422 if error and not request.headers.get("HX-Request") else 200
    return render(request, "documents/edit.html", context, status=status)


def _form_texts(of: Kind, body: dict[str, Any]) -> dict[str, str]:
    """The form of a body that was written as YAML; what the form could not show must be mended in the YAML first."""
    try:
        of.schema.model_validate(body)
        texts = texts_of(of.schema, body)
        lost = read_body(of.schema, texts)
    except RequestError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RequestError(
            "The form can show this only when it is a valid document; saving says what is wrong."
        ) from error
    if len(lost.get("steps", ())) != len(body.get("steps", ())):
        raise RequestError("The form cannot show every step; edit it as YAML.", field="steps")
    return texts


def _start_yaml(of: Kind, texts: dict[str, str]) -> str:
    try:
        return dump_yaml(read_body(of.schema, texts))
    except RequestError:
        return ""


def _imported(request: TeamRequest) -> str:
    text = _file(request, "file", "a YAML file", MAX_CHARS)
    parse_yaml(text)
    return text


def _file(request: TeamRequest, name: str, what: str, most_chars: int) -> str:
    upload = request.FILES.get(name)
    if upload is None:
        raise RequestError(f"Choose {what}.", field=name)
    return text_of(upload, most_chars, field=name)


def _located(form: DocumentForm, error: RequestError) -> dict[str, str]:
    """Input -> what is wrong there: the longest name whose words are all in the problem's path, in order."""
    names = [f.name for part in (form.part, *form.steps) if part for f in part.fields]
    names += [f.name for f in form.fields]
    names += [f"{row.name}.{column}" for row in (*form.parameters, *form.phases) for column in row.cells]

    def input_of(field: str) -> str:
        def fits(name: str) -> bool:
            rest = iter(field.split("."))
            return all(word in rest for word in name.split("."))

        return max(filter(fits, names), key=len, default="")

    found: dict[str, str] = {}
    for field, said in error.problems or [(error.field, error.message)]:
        if name := input_of(field):
            found[name] = f"{found[name]} {said}" if name in found else said
    return found
