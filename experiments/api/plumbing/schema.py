"""The OpenAPI schema, and what surrounds the operations: the reference page and the answer for unknown addresses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.urls import URLPattern, URLResolver, path, re_path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from experiments.api.plumbing.answers import add_examples
from experiments.api.plumbing.auth import TokenAuth
from experiments.api.plumbing.compressing import compress
from experiments.api.plumbing.known_queries import only_known_queries
from experiments.api.plumbing.limits import tell_budget
from experiments.api.plumbing.paging import link_pages
from experiments.api.plumbing.problems import (
    HEADERS,
    OF_EVERY_ANSWER,
    Problem,
    documented_problems,
    problem,
    problem_responses,
)
from experiments.api.plumbing.reference import reference_page
from experiments.api.plumbing.rendering import rendered
from experiments.api.plumbing.sparse import document_sparse
from experiments.api.plumbing.standard import make_standard


class DocumentedAPI(NinjaAPI):
    """NinjaAPI whose schema also says which scope an operation needs and what errors look like."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.add_decorator(only_known_queries)
        self._schemas: dict[str, OpenAPISchema] = {}  # made once: it takes a second and never changes

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        patterns, app_name, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern) and pattern.name == "openapi-json":
                pattern.callback = self._description
            elif isinstance(pattern, URLPattern):
                # Ninja's own page at the root knows only to say that it is not there, and says it in HTML.
                pattern.callback = unknown_address if pattern.name == "api-root" else _finished(pattern.callback)
        own = [
            path("docs", self._reference, name="reference"),
            re_path(r"^", unknown_address),
        ]
        return [*patterns, *own], app_name, namespace

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        prefix = path_prefix or self.get_root_path(path_params or {})
        if prefix not in self._schemas:
            self._schemas[prefix] = self._documented(prefix)
        return self._schemas[prefix]

    def _documented(self, path_prefix: str) -> OpenAPISchema:
        for operation in self._operations():
            scope = next((auth.scope for auth in operation.auth_callbacks if isinstance(auth, TokenAuth)), None)
            extra = operation.openapi_extra or {}
            operation.openapi_extra = {
                **extra,
                "x-scope": scope,
                "responses": {**extra.get("responses", {}), **problem_responses(has_body=_has_body(operation))},
            }
        schema = super().get_openapi_schema(path_prefix=path_prefix)
        shapes = schema["components"]["schemas"]
        problem_schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        shapes.update(problem_schema.pop("$defs"))
        shapes["Problem"] = problem_schema
        schema["components"]["responses"] = documented_problems()
        schema["components"]["headers"] = HEADERS
        _document_headers(schema)
        document_sparse(schema)
        make_standard(schema)
        add_examples(schema)
        schema["servers"] = [{"url": settings.BENCHHUB_URL, "description": "This installation"}]
        return schema

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__

    def _operations(self) -> list[Operation]:
        return [
            operation
            for router in self._get_bound_routers()
            for view in router.path_operations.values()
            for operation in view.operations
        ]

    def _description(self, request: HttpRequest) -> HttpResponseBase:
        """In UTF-8: some readers of YAML refuse the halves of a character as JSON escapes them."""
        return _finish(request, HttpResponse(rendered(self.get_openapi_schema()), content_type="application/json"))

    def _reference(self, request: HttpRequest) -> HttpResponse:
        return reference_page(request, self.get_openapi_schema())


def _document_headers(schema: dict[str, Any]) -> None:
    """The id and the budget that every answer tells, the ETag where there is one, and whether it was given before."""
    for methods in schema["paths"].values():
        for said in methods.values():
            taken = {one["name"] for one in said.get("parameters", ())}
            names = [*OF_EVERY_ANSWER]
            names += ["ETag"] if taken & {"If-Match", "If-None-Match"} else []
            names += ["Link"] if {"limit"} <= taken and taken & {"cursor", "after"} else []
            names += ["Idempotency-Replayed"] if "Idempotency-Key" in taken else []
            for status, answer in said["responses"].items():
                if "$ref" not in answer and int(status) < 400:
                    there = (*answer.get("headers", ()), *names)
                    answer["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in there}


def _has_body(operation: Operation) -> bool:
    return any(str(model.__ninja_param_source__) == "body" for model in operation.models)


View = Callable[..., HttpResponseBase]


def _finished(view: View) -> View:
    """What every answer gets: the budget of the token, and a method that is not there as a problem."""
    if iscoroutinefunction(view):

        @wraps(view)
        async def later(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with _as_get(request):
                response = await cast(Awaitable[HttpResponseBase], view(request, *args, **kwargs))
            return _finish(request, response)

        return cast(View, later)

    @wraps(view)
    def now(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with _as_get(request):
            response = view(request, *args, **kwargs)
        return _finish(request, response)

    return now


@contextmanager
def _as_get(request: HttpRequest) -> Iterator[None]:
    """HEAD asks what GET would answer; `_finish` leaves out the body."""
    asked = request.method
    request.method = "GET" if asked == "HEAD" else asked
    try:
        yield
    finally:
        request.method = asked


def _finish(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if isinstance(response, HttpResponseNotAllowed):
        there = {*response["Allow"].split(", "), "OPTIONS"}
        allowed = ", ".join(sorted(there | {"HEAD"} if "GET" in there else there))
        if request.method == "OPTIONS":
            response = HttpResponse(status=204)
            del response["Content-Type"]
        else:
            response = problem(405, f"{request.method} does nothing here; there is {allowed}.")
        response["Allow"] = allowed
    tell_budget(request, response)
    link_pages(request, response)
    compress(request, response)
    if getattr(request, "benchhub_replayed", False):
        response["Idempotency-Replayed"] = "true"
    return _without_body(response) if request.method == "HEAD" else response


def _without_body(response: HttpResponseBase) -> HttpResponseBase:
    """The same status and headers, with the length of the body where it is known; a stream is not begun."""
    if not isinstance(response, HttpResponse):
        return HttpResponse(status=response.status_code, headers=response.headers)
    if response.content:
        response["Content-Length"] = str(len(response.content))
    response.content = b""
    return response


@csrf_exempt
def unknown_address(_request: HttpRequest) -> HttpResponse:
    """Below the API also what is not there is said in JSON."""
    return problem(404, "There is nothing at this address; see /api/v1/docs for what there is.")
