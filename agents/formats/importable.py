"""The importable forms of report that belong to no load tool. A new one is a file here, a line below, and cases."""

from __future__ import annotations

from agents.formats import hdr_log
from agents.formats.report_format import ReportFormat

IMPORTABLE: dict[str, ReportFormat] = {form.name: form for form in (hdr_log.HDR_LOG,)}
