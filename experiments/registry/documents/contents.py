"""What the versions of documents hold: their bodies as the schemas that a run is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from pydantic import BaseModel

from agents.spec import ApplicationDocument, WorkloadDocument
from agents.steps.recipe import RecipeDocument
from experiments.models import Application, Document, Recipe, Workload

SCHEMAS: Mapping[type[Document], type[BaseModel]] = {
    Application: ApplicationDocument,
    Recipe: RecipeDocument,
    Workload: WorkloadDocument,
}


@overload
def content_of(document: Application) -> ApplicationDocument: ...
@overload
def content_of(document: Recipe) -> RecipeDocument: ...
@overload
def content_of(document: Workload) -> WorkloadDocument: ...
@overload
def content_of(document: Document) -> Any: ...


def content_of(document: Document) -> Any:
    """The version's body as its schema reads it."""
    return SCHEMAS[type(document)].model_validate(document.body)
