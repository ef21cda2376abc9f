"""A Prometheus source with a row for each of its queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join

from experiments.asking.prometheus import queries
from experiments.asking.prometheus.sources import MAX_SECRET, MAX_USERNAME, Wanted
from experiments.models import PrometheusSource
from experiments.registry.errors import RequestError
from experiments.registry.outgoing.addresses import MAX_URL
from frontend.shared.forms.fields import SecretField, tell_of_stored
from frontend.shared.refusals import refuse

EMPTY_ROWS = 3
PREFIX = "queries"
_PROMQL = 'rate(node_network_receive_bytes_total{instance="{host}:9100",device="eth0"}[1m])'


class SourceForm(forms.Form):
    """Where it is and who asks."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "Production"}))
    url = forms.CharField(
        max_length=MAX_URL, label="URL", widget=forms.URLInput(attrs={"placeholder": "https://prometheus.example.com"})
    )
    auth = forms.ChoiceField(choices=PrometheusSource.Auth.choices, label="Login")
    username = forms.CharField(max_length=MAX_USERNAME, required=False, label="User", help_text="Of a password alone.")
    secret = SecretField(
        max_length=MAX_SECRET, required=False, label="Token or password", help_text="It is stored encrypted."
    )
    is_active = forms.BooleanField(required=False, initial=True, label="Asked after each run")


class QueryForm(forms.Form):
    """One channel; a row without a channel and a query is none."""

    channel = forms.CharField(
        max_length=queries.MAX_CHANNEL, required=False, widget=forms.TextInput(attrs={"placeholder": "received"})
    )
    query = forms.CharField(
        max_length=queries.MAX_PROMQL,
        required=False,
        label="PromQL",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "placeholder": _PROMQL}),
    )
    unit = forms.CharField(
        max_length=queries.MAX_UNIT, required=False, widget=forms.TextInput(attrs={"placeholder": "bytes_per_s"})
    )
    role = forms.CharField(max_length=12, required=False, initial="sut")
    step_s = forms.IntegerField(
        min_value=queries.SHORTEST_STEP_S,
        max_value=queries.LONGEST_STEP_S,
        required=False,
        initial=queries.USUAL_STEP_S,
        label="Step, s",
    )
    label = forms.CharField(max_length=queries.MAX_CHANNEL, required=False, label="Label")

    @property
    def is_empty(self) -> bool:
        return not (self.cleaned_data.get("channel") or self.cleaned_data.get("query"))

    def as_query(self) -> queries.ChannelQuery:
        said = self.cleaned_data
        return queries.ChannelQuery(
            channel=said["channel"],
            query=said["query"],
            unit=said["unit"],
            role=said["role"] or "sut",
            step_s=said["step_s"] or queries.USUAL_STEP_S,
            label=said["label"],
        )


_Rows = forms.formset_factory(
    QueryForm, extra=EMPTY_ROWS, max_num=queries.MOST_QUERIES, absolute_max=queries.MOST_QUERIES + EMPTY_ROWS
)


class SourceForms:
    """The form and its rows together. `data` is what is to become of `source`; None shows it, or nothing yet."""

    def __init__(self, data: Mapping[str, Any] | None = None, source: PrometheusSource | None = None) -> None:
        names = [name for name in SourceForm.base_fields if name != "secret"]
        shown = source if data is None else None
        stored = {name: getattr(shown, name) for name in names} if shown else {}
        rows = [asdict(one) for one in queries.queries_of(shown.queries)] if shown else []
        self.form = SourceForm(data, initial=stored)
        if source and source.secret:
            tell_of_stored(self.form.fields["secret"])
        self.rows = _Rows(data, initial=rows, prefix=PREFIX)
        self.placeholders = format_html(
            '<dl class="facts">{}</dl>',
            format_html_join("", "<dt><code>{{{}}}</code></dt><dd>{}</dd>", queries.PLACEHOLDERS.items()),
        )

    def is_valid(self) -> bool:
        return bool(self.form.is_valid()) & bool(self.rows.is_valid())

    def wanted(self) -> Wanted:
        """What the valid forms say."""
        return Wanted(queries=[row.as_query() for row in self._filled()], **self.form.cleaned_data)

    def refuse(self, error: RequestError) -> None:
        """Show a refusal at the field of the form or of the row that it names."""
        of, _, field = (error.field or "").partition(".")
        number, _, name = field.partition(".")
        if of == PREFIX and number.isdigit():
            refuse(self._filled()[int(number)], RequestError(error.message, field=name))
        else:
            refuse(self.form, error)

    def _filled(self) -> list[QueryForm]:
        return [row for row in self.rows if not row.is_empty]
