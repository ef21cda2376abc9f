"""What is launched on which hosts, by names: what runs, searches, bisections and tuning searches share."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from experiments.api.choices import InquiryState
from experiments.api.finding import named_document, named_host, named_hosts, named_members
from experiments.api.shapes import Body, DriverNames, Labels, MemberNames, Named, Parameters, Priority, Reference
from experiments.asking.launching.choices import Choice, typed_parameters
from experiments.models import Application, Member, Recipe, Workload
from experiments.models.inquiries import Inquiry
from experiments.registry.documents.contents import content_of


class SetupIn(Body):
    """Stored documents and registered hosts."""

    application: Reference
    recipe: Reference
    workload: Reference
    sut: str = Field(min_length=1, max_length=120)
    drivers: DriverNames
    members: MemberNames = {}
    parameters: Parameters = {}
    labels: Labels = {}
    priority: Priority = "normal"

    def choice(self, member: Member) -> Choice:
        """The team's documents and hosts of these names. RequestError names the field of one that does not exist."""
        application = named_document(member, Application, self.application, field="application")
        recipe = named_document(member, Recipe, self.recipe, field="recipe")
        return Choice(
            application=application,
            recipe=recipe,
            workload=named_document(member, Workload, self.workload, field="workload"),
            sut=named_host(member, self.sut, field="sut"),
            drivers=named_hosts(member, self.drivers, field="drivers"),
            parameters=typed_parameters(content_of(recipe), self.parameters),
            members=named_members(member, self.members, field="members"),
        )


class InquiryRow(BaseModel):
    """What a search and a bisection show alike."""

    id: int
    url: str
    name: str
    state: InquiryState
    application: Named
    recipe: Named
    parameters: Parameters
    workload: Named
    sut: str
    drivers: list[str]
    sentence: str = Field(description="How it ended; while it runs, for which quota its next step waits, or empty")
    labels: dict[str, str]
    created_by: str | None
    created_at: datetime
    finished_at: datetime | None


def inquiry_fields(inquiry: Inquiry) -> dict[str, Any]:
    """All of `InquiryRow` but its address."""
    same = ("name", "state", "parameters", "sentence", "labels", "created_at", "finished_at")
    return {
        "id": inquiry.pk,
        "application": Named.of(inquiry.application),
        "recipe": Named.of(inquiry.recipe),
        "workload": Named.of(inquiry.workload),
        "sut": inquiry.sut.name,
        "drivers": inquiry.drivers.names,
        "created_by": inquiry.created_by.get_username() if inquiry.created_by else None,
        **{name: getattr(inquiry, name) for name in same},
    }
