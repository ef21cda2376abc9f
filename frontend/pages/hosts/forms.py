"""Adding and changing hosts."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.db.models import QuerySet

from agents.spec import USER_PATTERN
from experiments.models import Host, Site, Team
from frontend.shared.forms.fields import LabelsField
from frontend.shared.forms.links import LinkTemplatesField

SSH_PORT = 22
ROLES = [(Host.Roles.SUT, "SUT"), (Host.Roles.DRIVER, "Driver"), (Host.Roles.BOTH, "SUT and driver")]


class AddressField(forms.CharField):
    """`address` or `address:port`; an IPv6 address with a port stands in brackets."""

    def clean(self, value: Any) -> tuple[str, int]:
        text = super().clean(value).strip()
        host, colon, port = text.rpartition(":")
        if text.startswith("["):
            host, _, after = text[1:].partition("]")
            colon, port = after[:1], after[1:]
            if not after:
                return host, SSH_PORT
        elif ":" in host or not colon:
            return text, SSH_PORT
        if not (colon == ":" and port.isdecimal() and 1 <= int(port) <= 65535):
            raise forms.ValidationError(f"'{port}' is not a port between 1 and 65535.")
        return host, int(port)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, tuple):
            return value
        host, port = value
        shown = f"[{host}]" if ":" in host else host
        return host if port == SSH_PORT else f"{shown}:{port}"


class UserField(forms.RegexField):
    """The user to log in as."""

    def __init__(self, **kwargs: Any) -> None:
        words = "A user name has letters, digits, '.', '_' and '-', and starts with a letter or '_'."
        super().__init__(USER_PATTERN, error_messages={"invalid": words}, **kwargs)


class DataAddressField(forms.CharField):
    """Where the driver host finds the server, when that is not where BenchHub logs in."""

    def __init__(self) -> None:
        words = "Where the driver host finds the server, when that is another network."
        super().__init__(max_length=253, required=False, label="Data address", help_text=words)


class JumpField(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's own class takes none
    """A host of the team through which BenchHub reaches another."""

    def __init__(self) -> None:
        words = "The host through which BenchHub reaches it. Both get this host's key."
        super().__init__(Host.objects.none(), required=False, label="Jump host", empty_label="none", help_text=words)


class SiteField(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's own class takes none
    """The site whose workers reach a host."""

    def __init__(self) -> None:
        words = "Where the worker stands that logs in to it. All hosts of a run are at one site."
        sites = Site.objects.order_by("name")
        super().__init__(sites, required=False, label="Site", empty_label="central", help_text=words)


class NewHostForm(forms.Form):
    """Four fields; everything else has a default that can be changed later."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "arm-1", "autofocus": True}))
    address = AddressField(max_length=262, widget=forms.TextInput(attrs={"placeholder": "10.0.0.5 or arm-1.lab:2222"}))
    user = UserField(widget=forms.TextInput(attrs={"placeholder": "bench"}))
    roles = forms.ChoiceField(choices=ROLES, initial=Host.Roles.BOTH, label="Role")
    jump = JumpField()
    data_address = DataAddressField()
    site = SiteField()
    private_key = forms.CharField(
        required=False,
        strip=False,
        max_length=20_000,
        widget=forms.Textarea(
            attrs={
                "rows": 4,
                "spellcheck": "false",
                "autocomplete": "off",
                "placeholder": "-----BEGIN OPENSSH PRIVATE KEY-----",
            }
        ),
        help_text="Leave it empty and BenchHub makes a key pair of its own for this host.",
    )

    def __init__(self, team: Team, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer(self, Host.objects.for_team(team))
        _leave_out_what_has_no_choice(self)


class HostForm(forms.Form):
    """All that can be changed about a host."""

    name = forms.CharField(max_length=120)
    address = AddressField(max_length=262, help_text="Another address must show its host key again.")
    user = UserField()
    roles = forms.ChoiceField(choices=ROLES, label="Role")
    data_address = DataAddressField()
    jump = JumpField()
    site = SiteField()
    labels = LabelsField(required=False, help_text="key=value, one per line.")
    link_templates = LinkTemplatesField("They stand on the page of each run that uses this host.")

    def __init__(self, team: Team, host: Host, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer(self, Host.objects.for_team(team).exclude(pk=host.pk))
        _leave_out_what_has_no_choice(self)


def _offer(form: forms.Form, hosts: QuerySet[Host]) -> None:
    jump = cast("forms.ModelChoiceField[Any]", form.fields["jump"])
    jump.queryset = hosts.order_by("name")


def _leave_out_what_has_no_choice(form: forms.Form) -> None:
    """An installation without sites does not ask for one."""
    if not Site.objects.exists():
        del form.fields["site"]
