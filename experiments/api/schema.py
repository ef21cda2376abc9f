"""The OpenAPI schema, and what surrounds the operations: the reference page and the answer for unknown addresses."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path, re_path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from experiments.api.auth import TokenAuth
from experiments.api.problems import PROBLEM_RESPONSES, Problem, problem
from experiments.api.reference import reference_page


class DocumentedAPI(NinjaAPI):
    """NinjaAPI whose schema also says which scope an operation needs and what errors look like."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._schemas: dict[str, OpenAPISchema] = {}  # made once: it takes a second and never changes

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        patterns, app_name, namespace = super().urls
        own = [
            path("docs", self._reference, name="reference"),
            re_path(r"^", csrf_exempt(_unknown)),
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
                "responses": {**extra.get("responses", {}), **PROBLEM_RESPONSES},
            }
        schema = super().get_openapi_schema(path_prefix=path_prefix)
        shapes = schema["components"]["schemas"]
        problem_schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        shapes.update(problem_schema.pop("$defs"))
        shapes["Problem"] = problem_schema
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

    def _reference(self, request: HttpRequest) -> HttpResponse:
        return reference_page(request, self.get_openapi_schema())


def _unknown(_request: HttpRequest) -> HttpResponse:
    return problem(404, "There is nothing at this address; see docs for what there is.")
