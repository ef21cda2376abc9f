"""One run: what it found, how it went, what it changed and put back."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents.running.server_files import log_file
from experiments.asking.launching import cancelling, launch
from experiments.asking.launching.retries import links_of
from experiments.asking.prometheus.reading import has_measured, read_again, readings_of
from experiments.asking.prometheus.sources import sources_of
from experiments.judging.comparing.timers import timers_of
from experiments.judging.evidence.load_parts import load_parts
from experiments.judging.evidence.roles import CHECK, member_facts, members_of
from experiments.models import Artifact, Role, Run
from experiments.registry.errors import RequestError
from experiments.registry.logs.log_lines import lines_of, newest_lines
from experiments.registry.metrics.own_metrics import standing_metrics
from experiments.registry.metrics.vocabulary import METRICS, MetricSpec
from experiments.registry.notes.chart_notes import of_run
from experiments.registry.runs.baselines import baselines_of
from experiments.registry.runs.links import links_elsewhere
from experiments.registry.teams.access import may_launch_on
from experiments.running.queue.priorities import PRIORITIES, change_priority, name_of
from experiments.running.queue.waiting import expected_of
from experiments.telling.run_list.run_file import run_file
from experiments.telling.sharing.run_sheet import verdict_on
from frontend.charts.channels import GROUPS
from frontend.charts.percentiles import percentiles_json
from frontend.charts.samples import groups_of, part_in, run_samples_json
from frontend.charts.timeline import timeline_json
from frontend.pages.run.requests import requests_of
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.baseline import baseline_of, figure
from frontend.shared.lookups import find_run
from frontend.shared.refusals import RefusalSaid
from frontend.shared.run_story import Story, story_of

MEAN = "latency_mean_ms"
"""All that some load tools say of latency, such as pgbench."""
FIGURES = ("throughput_rps", "latency_p50_ms", "latency_p99_ms", "latency_p99.9_ms", "errors_total")
CPU_FIGURES = ("sut_cpu_ratio", "driver_cpu_ratio")
NEWEST_LINES = 1000
"""In the page itself; the log page has them all."""
PARTS = {"state": "run/_state.html", "record": "run/_record.html", "waiting": "run/_waiting.html"}


@team_view()
def run(request: TeamRequest, number: int) -> HttpResponse:
    """The page, or with `?part=` the piece of it that a live page asks for again."""
    found = find_run(request, number)
    part = request.GET.get("part", "")
    if part == "waiting":
        return render(request, PARTS[part], {"run": found, "waiting": expected_of(found)})
    story = story_of(found)
    context = {**_state(found, story), "may_launch": _may_launch(request, found)}
    if part not in PARTS or part == "record":
        context |= _record(found, story)
    if part in PARTS:
        return render(request, PARTS[part], context)
    page = {
        "groups": groups_of(found),
        "sampled": context["executed"] or found.samples.exists(),
        "notes_on_timeline": of_run(found),
        "percentiles": percentiles_json([found]),
        "timer_tables": timers_of([found]),
        "profiles": found.profiles.defer("folded").order_by("name"),
        "log": newest_lines(found, NEWEST_LINES),
    }
    return render(request, "run/page.html", {**context, **page})


def _state(run: Run, story: Story) -> dict[str, Any]:
    baseline, baselines = baseline_of(run), list(baselines_of(run.team))
    return {
        "run": run,
        "executed": run.origin == Run.Origin.EXECUTED,
        "story": story,
        "waiting": expected_of(run),
        "dirty_hosts": {host for host in run.hosts if host.dirty_run_id == run.pk},
        "links": links_of(run),
        "elsewhere": links_elsewhere(run, timezone.now()),
        "server_log": _server_log(run) if run.failure else None,
        "priorities": PRIORITIES,
        "baseline": baseline,
        "baselines": baselines,
        "is_baseline": any(one.run_id == run.pk and one.fingerprint for one in baselines),
        "verdict": verdict_on(run),
        "figures": [figure(run, metric, baseline) for metric in _headline(run)],
        "cpu_figures": [figure(run, METRICS[name], baseline) for name in CPU_FIGURES],
        "reasons": _reasons(run),
        "short_window": next((f for f in run.findings if f["check"] == "window" and f["level"] == "skipped"), None),
        "members": members_of(run),
        "limit": next((f for f in run.findings if f["check"] == CHECK), None),
        "checks_passed": sum(f["level"] == "ok" for f in run.findings),
        "checks_skipped": sum(f["level"] == "skipped" for f in run.findings),
    }


def _reasons(run: Run) -> list[list[dict[str, Any]]]:
    """What speaks against its figures, the worst first; findings of one check and level stand together."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for level in ("invalid", "warn"):
        for finding in run.findings:
            if finding["level"] == level:
                groups.setdefault((level, finding["check"]), []).append(finding)
    return list(groups.values())


def _server_log(run: Run) -> Artifact | None:
    """The log of the instance of the server that the failure names, else that of the first one."""
    logs = {log.name: log for log in run.artifacts.filter(name__regex=r"^server(-[0-9]+)?\.log$").defer("content")}
    named = [name for name in logs if name in run.failure_hint]
    return logs.get(named[0] if named else log_file("server"))


def _headline(run: Run) -> list[MetricSpec]:
    """The usual figures; of a run without requests/s what stands for it, and those of the usual ones that it has."""
    usual = [METRICS[name] for name in FIGURES]
    own = standing_metrics(run.team_id, run.metrics or ())
    if not own:
        return usual
    known = [METRICS[name] for name in (MEAN, *FIGURES) if name in run.metrics]
    return [*own, *known][: len(FIGURES)]


def _record(run: Run, story: Story) -> dict[str, Any]:
    sources = sources_of(run.team)
    return {
        "journal": story.journal,
        "config": sorted(run.config.values.items()) if run.config else [],
        "hardware": sorted(run.sut_profile.facts.items()) if run.sut_profile else [],
        "hardware_of_members": {role: sorted(facts.items()) for role, facts in member_facts(run).items() if facts},
        "artifacts": run.artifacts.defer("content").order_by("name"),
        "requests": requests_of(run),
        "load_parts": load_parts(run),
        "series": run.team.series.filter(fingerprint=run.fingerprint).first() if run.fingerprint else None,
        "readings": readings_of(run) if sources else [],
        "may_read_again": has_measured(run) and any(source.is_active for source in sources),
    }


def _may_launch(request: TeamRequest, run: Run) -> bool:
    return bool(run.spec and run.hosts) and all(may_launch_on(request.member, host) for host in run.hosts)


@team_view()
def samples(request: TeamRequest, number: int) -> HttpResponse:
    """The in-run lines of one group of channels for the chart."""
    found = find_run(request, number)
    story = story_of(found)
    groups = groups_of(found)
    group = (GROUPS | groups).get(request.GET.get("group", ""), next(iter(groups.values())))
    part = part_in(request.GET)
    return JsonResponse(run_samples_json(found, group, story.measure_from_unix_s, story.measure_for_s, part))


@team_view()
def timeline(request: TeamRequest, number: int) -> HttpResponse:
    """Load, latency and CPUs over one time axis with the phases."""
    found = find_run(request, number)
    return JsonResponse(timeline_json(found, story_of(found), part_in(request.GET)))


@require_POST
@team_view(Role.LAUNCHER)
def cancel(request: TeamRequest, number: int) -> HttpResponse:
    """Ask for the run's end; its worker restores the host."""
    found = find_run(request, number)
    with RefusalSaid(request):
        cancelling.cancel_run(request.member, found)
        done = found.state == Run.State.FINISHED
        messages.success(request, "Cancelled." if done else "Stopping the load; then the host is restored.")
    return redirect("run", request.team.slug, number)


@require_POST
@team_view(Role.LAUNCHER)
def read_prometheus(request: TeamRequest, number: int) -> HttpResponse:
    """Ask the team's Prometheus sources about a run once more."""
    found = find_run(request, number)
    with RefusalSaid(request):
        read_again(request.member, found)
        messages.success(request, "Prometheus is asked; its channels are here in a moment.")
    return redirect("run", request.team.slug, number)


@require_POST
@team_view(Role.LAUNCHER)
def priority(request: TeamRequest, number: int) -> HttpResponse:
    """Give a queued run another priority."""
    found = find_run(request, number)
    with RefusalSaid(request):
        wanted = PRIORITIES.get(request.POST.get("priority", ""))
        if wanted is None:
            raise RequestError(f"A priority is one of {', '.join(PRIORITIES)}.", field="priority")
        change_priority(request.member, found, wanted)
        messages.success(request, f"Run #{number} has {name_of(found.priority)} priority.")
    return redirect("run", request.team.slug, number)


@require_POST
@team_view(Role.LAUNCHER)
def rerun(request: TeamRequest, number: int) -> HttpResponse:
    """Queue the same versions, parameters and hosts again."""
    found = find_run(request, number)
    with RefusalSaid(request):
        again = launch.rerun(request.member, found)
        messages.success(request, f"Queued as #{again.number}, the same as #{number}.")
        return redirect("run", request.team.slug, again.number)
    return redirect("run", request.team.slug, number)


@team_view()
def artifact(request: TeamRequest, number: int, artifact_id: int) -> HttpResponseBase:
    """A tool's own file, byte for byte, always as a download."""
    found = Artifact.objects.filter(pk=artifact_id, run__team=request.team, run__number=number).first()
    if found is None:
        raise Http404("No such file.")
    name = _saved_as(f"run-{number}-{found.name}")
    return run_file(found, disposition=name, content_type=found.media_type)


@team_view()
def raw_log(request: TeamRequest, number: int) -> HttpResponse:
    """The whole log as text; also of a run that is under way or was lost."""
    found = find_run(request, number)
    lines = [f"{line.when} {line.source} {line.level}: {line.text}\n" for line in lines_of(found)]
    response = HttpResponse("".join(lines), content_type="text/plain; charset=utf-8")
    response.headers["Content-Disposition"] = _saved_as(f"run-{number}.log")
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _saved_as(name: str) -> str:
    """A download, whatever a browser would like to do with its content."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)
    return f'attachment; filename="{safe}"'
