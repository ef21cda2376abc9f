"""What a run is made of, as a form: for one run, and once per variant of an experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.urls import reverse

from agents.steps.recipe import Value
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.launch import EXPERIMENT_RETRIES
from experiments.models import Application, Experiment, Host, Recipe, Run, Workload
from experiments.models.documents import Document
from experiments.registry.documents.own_load import OWN_LOAD
from experiments.registry.errors import RequestError
from experiments.registry.experiments.rules import Rules
from experiments.registry.notes.labels import check_labels, check_tags
from experiments.running.queue.priorities import MAX_RETRIES, PRIORITIES, name_of
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.parameters import parameter_field

CHOICE_FIELDS = ("application", "recipe", "workload", "sut", "drivers")


def typed_label_list(text: str) -> dict[str, str]:
    """`key=value` lines as a mapping. ValidationError names the line that is none."""
    labels = {}
    for line in filter(None, (part.strip() for part in text.replace(",", "\n").splitlines())):
        key, equals, value = (part.strip() for part in line.partition("="))
        if not (equals and key and value):
            raise forms.ValidationError(f"'{line}' is no label; write key=value, one per line.")
        labels[key] = value
    try:
        return check_labels(labels)
    except RequestError as error:
        raise forms.ValidationError(error.message) from error


class LabelsField(forms.CharField):
    """Labels as `key=value` lines."""

    widget = forms.Textarea(attrs={"rows": 2, "placeholder": "commit=4f2c9d1", "spellcheck": "false"})

    def clean(self, value: Any) -> dict[str, str]:
        return typed_label_list(super().clean(value))

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else value


class PriorityField(forms.ChoiceField):
    """low, normal or high; its value is the model's number."""

    def __init__(self) -> None:
        super().__init__(
            choices=[(name, name) for name in PRIORITIES],
            initial="normal",
            help_text="High needs the role editor; low lets all others go first.",
        )

    def clean(self, value: Any) -> Run.Priority:
        return PRIORITIES[super().clean(value or self.initial)]

    def prepare_value(self, value: Any) -> Any:
        return name_of(value) if isinstance(value, int) else value


class RetriesField(forms.IntegerField):
    """How often a run is queued again by itself."""

    def __init__(self, initial: int) -> None:
        super().__init__(
            min_value=0,
            max_value=MAX_RETRIES,
            initial=initial,
            help_text="Tried again when a host or BenchHub fails, never when the run itself is wrong.",
        )

    def clean(self, value: Any) -> int:
        return int(super().clean(value or self.initial) or 0)


class PartsForm(forms.Form):
    """Application, recipe with its parameters, and hosts. Parameter fields are named `p_<parameter>`."""

    application = forms.ModelChoiceField(Application.objects.none(), empty_label="Choose…")
    recipe = forms.ModelChoiceField(Recipe.objects.none(), empty_label="Choose…")
    sut = forms.ModelChoiceField(Host.objects.none(), label="SUT", empty_label="Choose…")
    drivers = forms.ModelMultipleChoiceField(
        Host.objects.none(),
        label="Driver hosts",
        help_text="Several divide the load and begin together. Ctrl or ⌘ chooses more than one.",
        widget=forms.SelectMultiple(attrs={"size": 3}),
    )

    def __init__(self, choices: TeamChoices, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in CHOICE_FIELDS:
            if name in self.fields:
                choices.fill(cast("forms.ModelChoiceField[Any]", self.fields[name]), name, *self._all_chosen(name))
        self.fields["recipe"].widget.attrs |= {
            "hx-get": reverse("run_parameters", args=[choices.team.slug]),
            "hx-trigger": "change",
            "hx-target": f"#{self.parameters_id}",
            "hx-vals": json.dumps({"prefix": self.prefix or ""}),
        }
        document = choices.recipe_document(self._chosen("recipe"))
        self.parameters = dict(document.parameters) if document else {}
        for name, parameter in sorted(self.parameters.items()):
            self.fields[f"p_{name}"] = parameter_field(name, parameter)

    @property
    def parameters_id(self) -> str:
        """The element that holds the parameter fields."""
        return f"parameters-{self.prefix or 'run'}"

    def given(self) -> dict[str, Value]:
        """The parameters that differ from their defaults."""
        values = {name: self.cleaned_data.get(f"p_{name}") for name in self.parameters}
        return {
            name: value
            for name, value in values.items()
            if value not in (None, "") and value != self.parameters[name].default
        }

    def api_parts(self) -> dict[str, Any]:
        """The parts as the API names them: documents by version, so that the call means the same tomorrow."""
        parts: dict[str, Any] = {name: versioned(self.cleaned_data[name]) for name in ("application", "recipe")}
        parts |= {"sut": self.cleaned_data["sut"].name}
        parts |= {"drivers": [host.name for host in self.cleaned_data["drivers"]]}
        if given := self.given():
            parts["parameters"] = given
        return parts

    @property
    def parameter_fields(self) -> list[forms.BoundField]:
        return [self[f"p_{name}"] for name in sorted(self.parameters)]

    def clean_drivers(self) -> list[Host]:
        """In the order that a set of driver hosts has (`hosts.driver_sets`)."""
        return sorted(self.cleaned_data["drivers"], key=lambda host: host.pk)

    def _chosen(self, name: str) -> str:
        return next(iter(self._all_chosen(name)), "")

    def _all_chosen(self, name: str) -> list[str]:
        field = self.fields[name]
        value = (
            field.widget.value_from_datadict(self.data, self.files, self.add_prefix(name))
            if self.is_bound
            else self.get_initial_for_field(field, name)
        )
        values = value if isinstance(value, list | tuple) else [value]
        return [str(getattr(one, "pk", one)) for one in values if one]


class RunForm(PartsForm):
    """One run."""

    workload = forms.ModelChoiceField(Workload.objects.none(), empty_label="Choose…")
    labels = LabelsField(required=False, help_text="key=value, one per line; CI finds runs by them.")
    tags = forms.CharField(required=False, max_length=200, help_text="Words, separated by blanks or commas.")
    notes = forms.CharField(required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 2}))
    priority = PriorityField()
    retries = RetriesField(0)

    field_order = ("application", "recipe", "workload", "sut", "drivers", "labels", "tags", "notes")

    def choice(self) -> Choice:
        """What the valid form chose."""
        return Choice(parameters=self.given(), **{name: self.cleaned_data[name] for name in CHOICE_FIELDS})

    def clean_tags(self) -> list[str]:
        try:
            return check_tags(self.cleaned_data["tags"].replace(",", " ").split())
        except RequestError as error:
            raise forms.ValidationError(error.message) from error


class ExperimentForm(forms.Form):
    """The question, and how its runs are repeated and judged."""

    name = forms.CharField(max_length=120)
    question = forms.CharField(
        max_length=400, required=False, widget=forms.TextInput(attrs={"placeholder": "Does … make … faster?"})
    )
    workload = forms.ModelChoiceField(Workload.objects.none(), empty_label="Choose…")
    repetitions = forms.IntegerField(min_value=1, max_value=100, initial=5)
    order = forms.ChoiceField(choices=Experiment.Order.choices, initial=Experiment.Order.BLOCKS)
    primary_metric = forms.ChoiceField(label="Judged by")
    margin_pct = forms.FloatField(
        min_value=0.01,
        max_value=99,
        initial=3,
        label="Margin (%)",
        help_text="A smaller difference counts as none.",
    )
    stop_rule = forms.ChoiceField(
        choices=Experiment.StopRule.choices,
        initial=Experiment.StopRule.FIXED,
        required=False,
        label="Stops",
        help_text="A rule starts with 5 or 8 blocks and adds more where they are needed.",
    )
    target_pct = forms.FloatField(
        required=False,
        min_value=0.01,
        max_value=99,
        label="Interval within ± (%)",
        help_text="How narrow is narrow enough; for that rule only.",
    )
    max_blocks = forms.IntegerField(
        required=False, min_value=1, max_value=100, initial=20, label="At most blocks", help_text="Where a rule ends."
    )
    max_hours = forms.FloatField(
        required=False, min_value=0.01, max_value=10000, label="At most hours", help_text="Machine time; may be empty."
    )
    aa_first = forms.BooleanField(
        required=False,
        label="A/A check first",
        help_text="Ten runs of the baseline against itself; a difference there stops the experiment.",
    )
    gate_metrics = forms.MultipleChoiceField(
        required=False,
        label="Must not get worse either",
        help_text="They decide beside the metric above; all are corrected for their number (Holm).",
        widget=forms.SelectMultiple(attrs={"size": 4}),
    )
    priority = PriorityField()
    retries = RetriesField(EXPERIMENT_RETRIES)
    labels = LabelsField(required=False, help_text="key=value, one per line; every run gets them.")

    def __init__(self, choices: TeamChoices, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen = self.data.get("workload") if self.is_bound else self.initial.get("workload")
        choices.fill(cast("forms.ModelChoiceField[Any]", self.fields["workload"]), "workload", str(chosen or ""))
        for name in ("primary_metric", "gate_metrics"):
            cast("forms.ChoiceField", self.fields[name]).choices = choices.metrics()

    def rules(self) -> Rules:
        """The rules of the valid form."""
        cleaned = self.cleaned_data
        target_pct = cleaned["target_pct"]
        return Rules(
            stop_rule=cleaned["stop_rule"] or Experiment.StopRule.FIXED,
            target_ratio=None if target_pct is None else target_pct / 100,
            max_blocks=cleaned["max_blocks"] or Rules.max_blocks,
            max_hours=cleaned["max_hours"],
            aa_first=cleaned["aa_first"],
            gate_metrics=tuple(cleaned["gate_metrics"]),
        )


class VariantForm(PartsForm):
    """One row of the variants table."""

    name = forms.CharField(
        max_length=120,
        widget=forms.TextInput(attrs={"placeholder": "Name of the variant", "aria-label": "Variant name"}),
    )
    offered_rate_rps = forms.FloatField(
        required=False, min_value=1, max_value=1e9, label="Offered rate (requests/s)", help_text="Else the workload's."
    )

    concurrency = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        label="Connections or users",
        help_text="Else the workload's; whichever its load tool has.",
    )

    field_order = ("name", "application", "recipe", "sut", "drivers")

    def candidate(self, *, is_baseline: bool) -> Candidate:
        """The variant that the valid row describes."""
        parts = {name: self.cleaned_data[name] for name in ("name", "application", "recipe", "sut", "drivers")}
        parts |= {name: self.cleaned_data[name] for name in OWN_LOAD}
        return Candidate(parameters=self.given(), is_baseline=is_baseline, **parts)

    def api_parts(self) -> dict[str, Any]:
        own = {name: self.cleaned_data[name] for name in OWN_LOAD}
        return super().api_parts() | {name: value for name, value in own.items() if value is not None}


def urgency_parts(cleaned: Mapping[str, Any], *, retries: int) -> dict[str, Any]:
    """Priority and retries as the API names them, where they are not what it takes by itself."""
    parts: dict[str, Any] = {}
    if cleaned["priority"] != Run.Priority.NORMAL:
        parts["priority"] = name_of(cleaned["priority"])
    if cleaned["retries"] != retries:
        parts["retries"] = cleaned["retries"]
    return parts


def versioned(document: Document) -> str:
    """A version as the API names it."""
    return f"{document.name}@{document.version}"


SHOWN_AT = {"target_ratio": "target_pct", "margin_ratio": "margin_pct"}
"""Fields that the form calls otherwise, because people write percent."""


def refuse(form: forms.Form, error: RequestError) -> None:
    """Show a use case's refusal at the field that it names, else above the form."""
    field = SHOWN_AT.get(error.field or "", error.field)
    form.add_error(field if field in form.fields else None, error.message)
