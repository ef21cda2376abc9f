"""The sites of the installation, as an operator says them."""

from __future__ import annotations

from typing import Any

from django import forms

from experiments.models import Site
from experiments.registry.hosts.sites import MOST_LIVE_RUNS


class SiteForm(forms.Form):
    """A new site."""

    name = forms.CharField(max_length=40, help_text="Lowercase letters, digits and hyphens, such as berlin.")
    description = forms.CharField(max_length=200, required=False, help_text="What people read beside the name.")
    most_live_runs = forms.IntegerField(
        min_value=1,
        max_value=MOST_LIVE_RUNS,
        required=False,
        label="Live runs at most",
        help_text="Empty: as many as BENCHHUB_SITE_LIVE_RUNS says.",
    )
    keys_stay = forms.BooleanField(
        required=False,
        label="Keys stay there",
        help_text="Its workers fetch their runs over HTTPS and have the hosts' keys. It cannot be changed later.",
    )


class ChangedSiteForm(SiteForm):
    """Another description or limit of a site; workers are started with its name, so that stays."""

    name = forms.CharField(max_length=40, widget=forms.HiddenInput)
    keys_stay = None

    def __init__(self, site: Site | None, *args: Any, **kwargs: Any) -> None:
        stored = ("name", "description", "most_live_runs")
        initial = {} if site is None else {field: getattr(site, field) for field in stored}
        super().__init__(*args, initial=initial, auto_id=f"id_{site.name}_%s" if site else False, **kwargs)
