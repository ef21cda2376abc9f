"""The sites of the installation, as an operator says them."""

from __future__ import annotations

from django import forms
from django.http import QueryDict

from experiments.models import Site
from experiments.registry.hosts.sites import MOST_LIVE_RUNS


class ChangedSiteForm(forms.Form):
    """Another description or limit of a site; workers are started with its name, so that stays."""

    name = forms.CharField(max_length=40, widget=forms.HiddenInput)
    description = forms.CharField(max_length=200, required=False, help_text="What people read beside the name.")
    most_live_runs = forms.IntegerField(
        min_value=1,
        max_value=MOST_LIVE_RUNS,
        required=False,
        label="Live runs at most",
        help_text="Empty: as many as BENCHHUB_SITE_LIVE_RUNS says.",
    )

    def __init__(self, site: Site, data: QueryDict | None = None) -> None:
        stored = {field: getattr(site, field) for field in ("name", "description", "most_live_runs")}
        super().__init__(data, initial=stored, auto_id=f"id_{site.name}_%s")


class SiteForm(forms.Form):
    """A new site."""

    name = forms.CharField(max_length=40, help_text="Lowercase letters, digits and hyphens, such as berlin.")
    description = ChangedSiteForm.base_fields["description"]
    most_live_runs = ChangedSiteForm.base_fields["most_live_runs"]
    keys_stay = forms.BooleanField(
        required=False,
        label="Keys stay there",
        help_text="Its workers fetch their runs over HTTPS and have the hosts' keys. It cannot be changed later.",
    )
