"""Reports and recordings that tools wrote elsewhere: a file, or its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile

from agents.drivers.reading import FILE_READERS, REPORTING
from agents.facts.described import COMMANDS, MAX_CHARS
from agents.readers import RESULT_READERS
from agents.recordings import RECORDINGS
from experiments.asking.intake.imports import AUTO, MAX_REPORT_CHARS
from experiments.asking.intake.named_results import ALL
from experiments.asking.intake.recordings import MAX_RECORDING_CHARS
from experiments.asking.intake.several_files import ImportFile
from experiments.models import Application, Recipe, Run, Team, Workload
from experiments.registry.errors import RequestError
from frontend.pages.imports.several import FilesField, as_text, from_text
from frontend.shared.forms.fields import LabelsField
from frontend.shared.forms.uploads import text_of

_DOCUMENTS = {"application": Application, "recipe": Recipe, "workload": Workload}
_UTC = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})


class OutputForm(forms.Form):
    """What a tool wrote, uploaded or pasted."""

    max_chars = 0

    file = forms.FileField(required=False, label="File")
    text = forms.CharField(
        required=False,
        strip=False,
        label="or its text",
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "class": "mono"}),
    )

    def clean(self) -> dict[str, Any]:
        """Puts the file's text into `text`."""
        found = super().clean() or {}
        upload: UploadedFile[Any] | None = found.get("file")
        if upload is not None and found.get("text"):
            raise forms.ValidationError("Give a file or its text, not both.")
        if upload is None:
            # A browser ends each line of a text with CR LF, whatever it was.
            found["text"] = (found.get("text") or "").replace("\r\n", "\n")
            if not found.get("text"):
                self.add_error("file", "Choose a file, or paste its text.")
            return found
        try:
            found["text"] = text_of(upload, self.max_chars, field="file")
        except RequestError as error:
            self.add_error("file", f"{error.message} {self.elsewhere(found)}".strip())
        return found

    def elsewhere(self, found: dict[str, Any]) -> str:
        """What else reads such a file when it is too large for a page."""
        return ""


class ReportForm(OutputForm):
    """A load tool's report, or a file of benchmarks, becomes runs without execution."""

    max_chars = MAX_REPORT_CHARS

    kind = forms.ChoiceField(
        label="What wrote it",
        choices=[
            (AUTO, "by its content: shown before it is stored"),
            ("Load tools", [(kind, kind) for kind in REPORTING]),
            ("Files of benchmarks", [(kind, reader.title) for kind, reader in RESULT_READERS.items()]),
        ],
    )
    file = FilesField(required=False, label="Files", help_text="Several files of one measurement are one import.")
    file_name = forms.CharField(required=False, max_length=255, widget=forms.HiddenInput)
    shown_files = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)
    command = forms.CharField(
        required=False,
        max_length=100_000,
        label="Its command line",
        help_text="Some figures, such as the offered rate, stand only there.",
        widget=forms.TextInput(
            attrs={"placeholder": "wrk2 -t8 -c400 -R20000 -d60s http://sut/", "autocomplete": "off"}
        ),
    )
    measured_at = forms.DateTimeField(
        required=False, label="Measured at (UTC)", help_text="Now, when it is empty.", widget=_UTC
    )
    application = forms.ChoiceField(required=False)
    recipe = forms.ChoiceField(required=False)
    workload = forms.ChoiceField(
        required=False, help_text="Imports of one application, workload, tool and load form a history."
    )
    labels = LabelsField(required=False, help_text="key=value, one per line. cpus=4 puts the run on the scaling page.")
    machine = forms.CharField(
        required=False,
        max_length=MAX_CHARS,
        label="Machine of the server",
        help_text=f"What this printed there: {COMMANDS}. Each machine has a history of its own.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
    )

    split = forms.BooleanField(
        required=False,
        label="The file holds several runs",
        help_text="A file to which JMeter appended becomes a run for each of them.",
    )

    directions = forms.CharField(
        required=False,
        label="Which is better",
        help_text=f"Of figures of which the file does not say it: latency=lower, one per line. {ALL}=lower is for all.",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )

    field_order = (
        "kind", "file", "text", "split", "command", "directions", "measured_at", "workload", "application", "recipe",
        "labels", "machine",
    )  # fmt: skip

    def __init__(self, team: Team, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.team = team
        for name, model in _DOCUMENTS.items():
            found = model.objects.for_team(team).newest_versions().values_list("name", flat=True)
            field = cast("forms.ChoiceField", self.fields[name])
            field.choices = [("", "none"), *((one, one) for one in found)]

    def clean_directions(self) -> dict[str, Any]:
        found = {}
        for line in filter(None, map(str.strip, self.cleaned_data["directions"].splitlines())):
            name, _, direction = line.rpartition("=")
            if not name.strip() or direction.strip() not in ("higher", "lower"):
                raise forms.ValidationError(f"{line[:60]!r} is not like latency=lower: a figure, and higher or lower.")
            found[name.strip()] = direction.strip()
        return found

    def clean(self) -> dict[str, Any]:
        """One file or its text is in `text`, several are in `files`."""
        uploads = self.cleaned_data.get("file") or []
        self.cleaned_data["file"] = uploads[0] if len(uploads) == 1 else None
        self.cleaned_data["files"] = []
        if uploads:
            self.cleaned_data["shown_files"] = ""  # chosen anew
        if len(uploads) > 1 or (not uploads and self.cleaned_data.get("shown_files")):
            self._take_several(uploads)
            return self.cleaned_data
        found = super().clean()
        if (upload := found.get("file")) is not None:
            found["file_name"] = (upload.name or "")[:255]
        return found

    def _take_several(self, uploads: Sequence[UploadedFile[Any]]) -> None:
        found = self.cleaned_data
        try:
            if found.get("text"):
                raise RequestError("Give files or a text, not both.")
            if found.get("command"):
                raise RequestError("Several files have no command line in common; leave it empty.", field="command")
            found["files"] = [
                ImportFile(one.name or "", text_of(one, self.max_chars, field="file", what=one.name or "A file"), kind)
                for one in uploads
                if (kind := found.get("kind", AUTO))
            ] or from_text(found["shown_files"])
        except (RequestError, ValueError) as error:
            self.add_error(getattr(error, "field", None) or "file", str(getattr(error, "message", error)))

    def with_text(self, kind: str) -> ReportForm:
        """The same form with the file's text in it, of this kind: a browser sends a chosen file once only."""
        found = self.cleaned_data
        return self._again({"kind": kind, "text": found["text"], "file_name": found["file_name"]})

    def with_files(self, files: Sequence[ImportFile]) -> ReportForm:
        """The same form with these files in it."""
        return self._again({"kind": AUTO, "shown_files": as_text(files)})

    def _again(self, more: dict[str, Any]) -> ReportForm:
        given = {name: self.data.get(name, "") for name in self.fields if name != "file"}
        again = ReportForm(self.team, given | more)
        again.full_clean()
        return again

    def elsewhere(self, found: dict[str, Any]) -> str:
        kind = found.get("kind", "")
        return f"The command `parse {kind} FILE` reads files of any size." if kind in FILE_READERS else ""

    def given(self) -> dict[str, Any]:
        """What `import_reports` takes; of several files what `import_files` takes beside them."""
        apart = {"file", "files", "shown_files"}
        if self.cleaned_data["files"]:
            apart |= {"kind", "text", "command", "file_name"}
        return {name: value for name, value in self.cleaned_data.items() if name not in apart}


class RecordingForm(OutputForm):
    """What another monitor wrote on one of a run's hosts, put onto the run's clock."""

    max_chars = MAX_RECORDING_CHARS

    kind = forms.ChoiceField(label="Monitor", choices=[(kind, kind) for kind in RECORDINGS])
    role = forms.ChoiceField(label="Host")
    started_at = forms.DateTimeField(
        required=False,
        label="First sample at (UTC)",
        help_text="When it is empty the file's own clock counts, read as UTC.",
        widget=_UTC,
    )

    field_order = ("kind", "role", "file", "text", "started_at")

    def __init__(self, run: Run, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        drivers = run.drivers.names if run.drivers else [""]
        roles = ["sut", "driver", *(f"driver-{number}" for number in range(2, len(drivers) + 1))]
        names = [
            f"{run.sut.name}, the SUT" if run.sut else "SUT",
            *(f"{one}, driver host" if one else "driver host" for one in drivers),
        ]
        cast("forms.ChoiceField", self.fields["role"]).choices = list(zip(roles, names, strict=True))

    def given(self) -> dict[str, Any]:
        """What `import_recording` takes."""
        return {name: value for name, value in self.cleaned_data.items() if name != "file"}
