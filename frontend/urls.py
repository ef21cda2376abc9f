"""Every page's address. One line per page or action."""

from __future__ import annotations

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from experiments.telling.sharing.sheet_files import CONTENT_TYPES
from frontend.pages.alert_rules import views as alert_rules
from frontend.pages.alerts import views as alerts
from frontend.pages.audit import views as audit
from frontend.pages.baselines import views as baselines
from frontend.pages.bisections import views as bisections
from frontend.pages.chart_notes import views as chart_notes
from frontend.pages.compare import views as compare
from frontend.pages.documents import edit
from frontend.pages.documents import views as documents
from frontend.pages.experiments import views as experiment
from frontend.pages.find import views as find
from frontend.pages.gate import views as gate
from frontend.pages.hardware import views as hardware
from frontend.pages.help import views as help_pages
from frontend.pages.home import views as home
from frontend.pages.hosts import actions, own, reservations
from frontend.pages.hosts import views as hosts
from frontend.pages.imports import views as imports
from frontend.pages.library import views as library
from frontend.pages.new_experiment import views as new_experiment
from frontend.pages.new_run import views as new_run
from frontend.pages.notes import views as notes
from frontend.pages.operator import views as operator
from frontend.pages.overview import views as overview
from frontend.pages.profiles import views as profiles
from frontend.pages.prometheus import views as prometheus
from frontend.pages.queue import views as queue
from frontend.pages.report import views as report
from frontend.pages.run import live, timers
from frontend.pages.run import views as run
from frontend.pages.run_log import views as run_log
from frontend.pages.runs import bulk, saved_views
from frontend.pages.runs import views as run_list
from frontend.pages.scaling import views as scaling
from frontend.pages.schedules import views as schedules
from frontend.pages.searches import views as searches
from frontend.pages.shares import public
from frontend.pages.shares import views as shares
from frontend.pages.sites import views as sites
from frontend.pages.team import invitations, members
from frontend.pages.team import views as team
from frontend.pages.thresholds import views as thresholds
from frontend.pages.trash import views as trash
from frontend.pages.trends import views as trends
from frontend.pages.tunings import views as tunings
from frontend.pages.usage import views as usage
from frontend.pages.webhooks import views as webhooks
from frontend.shared.document_kinds import KINDS


class DocumentKindConverter(StringConverter):
    """The first word of the document pages: applications, recipes, workloads."""

    regex = "|".join(KINDS)


class PictureFormConverter(StringConverter):
    """How a picture is drawn."""

    regex = "svg|png"


class ReportFormConverter(StringConverter):
    """A report as a file."""

    regex = "|".join(CONTENT_TYPES)


register_converter(DocumentKindConverter, "document_kind")
register_converter(PictureFormConverter, "picture_form")
register_converter(ReportFormConverter, "report_form")

TEAM = "t/<slug:team_slug>/"

urlpatterns = [
    path("", home.home, name="home"),
    path("favicon.ico", home.favicon, name="favicon"),
    # What was shared: without a login
    path("robots.txt", public.robots, name="robots"),
    path("s/<str:token>/", public.shared_page, name="shared_page"),
    path("s/<str:token>/embed/", public.shared_embed, name="shared_embed"),
    path("s/<str:token>/badge.svg", public.shared_badge, name="shared_badge"),
    path("s/<str:token>/report.<report_form:form>", public.shared_report, name="shared_report"),
    path("s/<str:token>/chart.<picture_form:form>", public.shared_picture, name="shared_chart"),
    path("s/<str:token>/<str:plot_name>.<picture_form:form>", public.shared_picture, name="shared_picture"),
    path("teams/new/", team.new_team, name="new_team"),
    path("invitations/<str:text>/", invitations.invitation, name="invitation"),
    # Overview
    path(TEAM, overview.overview, name="overview"),
    path(TEAM + "first-steps/hide", overview.no_first_steps, name="no_first_steps"),
    path(TEAM + "trends/<int:pk>/pin", overview.pin, name="pin_trend"),
    path(TEAM + "find/", find.find, name="find"),
    # Run
    path(TEAM + "runs/<int:number>/", run.run, name="run"),
    path(TEAM + "runs/<int:number>/report.<report_form:form>", report.run_report, name="run_report"),
    path(TEAM + "runs/<int:number>/cancel", run.cancel, name="cancel_run"),
    path(TEAM + "runs/<int:number>/notes", notes.run_notes, name="run_notes"),
    path(TEAM + "runs/<int:number>/archive", notes.run_archive, name="archive_run"),
    path(TEAM + "runs/<int:number>/baseline", baselines.pin_baseline, name="pin_baseline"),
    path(TEAM + "runs/<int:number>/rerun", run.rerun, name="rerun"),
    path(TEAM + "runs/<int:number>/priority", run.priority, name="run_priority"),
    path(TEAM + "runs/<int:number>/prometheus", run.read_prometheus, name="read_prometheus"),
    path(TEAM + "runs/<int:number>/timers", timers.add_timers, name="add_timers"),
    path(TEAM + "runs/<int:number>/recordings/new/", imports.add_recording, name="add_recording"),
    path(TEAM + "runs/import/", imports.import_run, name="import_run"),
    path(TEAM + "runs/<int:number>/samples", run.samples, name="run_samples"),
    path(TEAM + "runs/<int:number>/timeline", run.timeline, name="run_timeline"),
    path(TEAM + "runs/<int:number>/log", run.raw_log, name="run_log"),
    path(TEAM + "runs/<int:number>/log/", run_log.run_log, name="run_log_page"),
    path(TEAM + "runs/<int:number>/log/lines", run_log.run_log_lines, name="run_log_lines"),
    path(TEAM + "runs/<int:number>/profiles/<str:profile>/", profiles.run_profile, name="run_profile"),
    path(TEAM + "runs/<int:number>/profiles/<str:profile>/tree", profiles.run_profile_tree, name="run_profile_tree"),
    path(TEAM + "runs/<int:number>/profiles/<str:profile>/file", profiles.run_profile_file, name="run_profile_file"),
    path(TEAM + "runs/<int:number>/artifacts/<int:artifact_id>", run.artifact, name="artifact"),
    path(TEAM + "runs/<int:number>/events", live.events, name="run_events"),
    path(TEAM + "runs/<int:number>/events/page", live.events_page, name="run_events_page"),
    # Experiments
    path(TEAM + "experiments/", experiment.experiments, name="experiments"),
    path(TEAM + "experiments/<int:experiment_id>/", experiment.experiment, name="experiment"),
    path(TEAM + "experiments/<int:experiment_id>/report/", report.experiment_report, name="experiment_report"),
    path(
        TEAM + "experiments/<int:experiment_id>/report.md",
        report.experiment_report_markdown,
        name="experiment_report_markdown",
    ),
    path(
        TEAM + "experiments/<int:experiment_id>/report.csv", report.experiment_report_csv, name="experiment_report_csv"
    ),
    path(
        TEAM + "experiments/<int:experiment_id>/report.pdf", report.experiment_report_pdf, name="experiment_report_pdf"
    ),
    path(
        TEAM + "experiments/<int:experiment_id>/report/<str:plot_name>.svg",
        report.experiment_report_plot,
        name="experiment_report_plot",
    ),
    path(TEAM + "experiments/<int:experiment_id>/notes", notes.experiment_notes, name="experiment_notes"),
    path(TEAM + "experiments/<int:experiment_id>/cancel", experiment.cancel_experiment, name="cancel_experiment"),
    path(TEAM + "experiments/<int:experiment_id>/launch", experiment.launch_experiment, name="launch_experiment"),
    path(TEAM + "experiments/<int:experiment_id>/baseline", experiment.change_baseline, name="change_baseline"),
    path(TEAM + "experiments/<int:experiment_id>/pause", experiment.pause_experiment, name="pause_experiment"),
    path(TEAM + "experiments/<int:experiment_id>/resume", experiment.resume_experiment, name="resume_experiment"),
    path(TEAM + "experiments/<int:experiment_id>/scaling/", scaling.scaling, name="scaling"),
    path(TEAM + "experiments/<int:experiment_id>/gate/", gate.gate, name="gate"),
    # Searches
    path(TEAM + "experiments/searches/", searches.search_list, name="searches"),
    path(TEAM + "experiments/searches/new/", searches.new_search, name="new_search"),
    path(TEAM + "experiments/searches/<int:search_id>/", searches.search, name="search"),
    path(TEAM + "experiments/searches/<int:search_id>/chart", searches.search_chart, name="search_chart"),
    path(TEAM + "experiments/searches/<int:search_id>/cancel", searches.cancel_search, name="cancel_search"),
    # Tuning
    path(TEAM + "experiments/tunings/", tunings.tuning_list, name="tunings"),
    path(TEAM + "experiments/tunings/new/", tunings.new_tuning, name="new_tuning"),
    path(TEAM + "experiments/tunings/new/parameters", tunings.tuning_parameters, name="tuning_parameters"),
    path(TEAM + "experiments/tunings/<int:tuning_id>/", tunings.tuning, name="tuning"),
    path(TEAM + "experiments/tunings/<int:tuning_id>/chart", tunings.tuning_chart, name="tuning_chart"),
    path(TEAM + "experiments/tunings/<int:tuning_id>/effects", tunings.tuning_effects, name="tuning_effects"),
    path(TEAM + "experiments/tunings/<int:tuning_id>/budget", tunings.tuning_budget, name="tuning_budget"),
    path(TEAM + "experiments/tunings/<int:tuning_id>/region", tunings.tuning_region, name="tuning_region"),
    path(TEAM + "experiments/tunings/<int:tuning_id>/recipe", tunings.tuning_recipe, name="tuning_recipe"),
    path(TEAM + "experiments/tunings/<int:tuning_id>/do/<slug:action>", tunings.tuning_action, name="tuning_action"),
    # Bisections
    path(TEAM + "experiments/bisections/", bisections.bisection_list, name="bisections"),
    path(TEAM + "experiments/bisections/new/", bisections.new_bisection, name="new_bisection"),
    path(TEAM + "experiments/bisections/<int:bisection_id>/", bisections.bisection, name="bisection"),
    path(TEAM + "experiments/bisections/<int:bisection_id>/chart", bisections.bisection_chart, name="bisection_chart"),
    path(
        TEAM + "experiments/bisections/<int:bisection_id>/cancel", bisections.cancel_bisection, name="cancel_bisection"
    ),
    # Schedules
    path(TEAM + "experiments/schedules/", schedules.schedule_list, name="schedules"),
    path(TEAM + "experiments/schedules/new/", schedules.new_schedule, name="new_schedule"),
    path(TEAM + "experiments/schedules/<int:schedule_id>/", schedules.schedule, name="schedule"),
    path(TEAM + "experiments/schedules/<int:schedule_id>/edit/", schedules.edit_schedule, name="edit_schedule"),
    path(TEAM + "experiments/schedules/<int:schedule_id>/do", schedules.schedule_action, name="schedule_action"),
    # Compare
    path(TEAM + "compare/", compare.compare_runs, name="compare"),
    path(TEAM + "compare/functions/", profiles.functions, name="functions"),
    path(TEAM + "compare/functions/tree", profiles.functions_tree, name="functions_tree"),
    path(TEAM + "compare/overlays", compare.overlays, name="compare_overlays"),
    # Trends
    path(TEAM + "trends/", trends.trends, name="trends"),
    path(TEAM + "trends/points", trends.points, name="trend_points"),
    path(TEAM + "trends/<int:pk>/expect", alerts.expect_level, name="expect_level"),
    path(TEAM + "metrics/<str:metric>/follow", alerts.follow, name="follow_metric"),
    path(TEAM + "trends/<int:pk>/annotate", chart_notes.annotate_series, name="annotate_series"),
    path(TEAM + "annotations/<int:pk>", chart_notes.change_annotation, name="change_annotation"),
    path(TEAM + "runs/<int:number>/annotate", chart_notes.annotate_run, name="annotate_run"),
    # Alerts
    path(TEAM + "alerts/", alerts.alert_list, name="alerts"),
    path(TEAM + "alerts/mails", alerts.alert_mails, name="alert_mails"),
    path(TEAM + "alerts/rules/", alert_rules.rule_list, name="alert_rules"),
    path(TEAM + "alerts/rules/<int:rule_id>/", alert_rules.rule, name="alert_rule"),
    path(TEAM + "alerts/rules/<int:rule_id>/delete", alert_rules.rule_delete, name="delete_alert_rule"),
    path(TEAM + "alerts/<int:pk>/", alerts.alert_page, name="alert"),
    path(TEAM + "alerts/<int:pk>/triage", alerts.triage_alert, name="triage_alert"),
    path(TEAM + "alerts/<int:pk>/rerun", alerts.rerun_ends, name="rerun_ends"),
    # Runs
    path(TEAM + "runs/", run_list.run_list, name="runs"),
    path(TEAM + "runs/csv", run_list.run_csv, name="runs_csv"),
    path(TEAM + "runs/bulk", bulk.bulk_runs, name="bulk_runs"),
    path(TEAM + "runs/baselines/", baselines.baseline_list, name="baselines"),
    path(TEAM + "runs/baselines/<int:baseline_id>/unpin", baselines.unpin_baseline, name="unpin_baseline"),
    path(TEAM + "runs/views", saved_views.new_view, name="new_view"),
    path(TEAM + "runs/views/<int:view_id>", saved_views.change, name="change_view"),
    path(TEAM + "runs/new/", new_run.new_run, name="new_run"),
    path(TEAM + "runs/new/preview", new_run.run_preview, name="run_preview"),
    path(TEAM + "runs/new/parameters", new_run.run_parameters, name="run_parameters"),
    path(TEAM + "runs/new/dry-run", new_run.run_dry, name="dry_run"),
    path(TEAM + "runs/new/dry-run/<int:pk>", new_run.dry_run_result, name="dry_run_result"),
    path(TEAM + "experiments/new/", new_experiment.new_experiment, name="new_experiment"),
    path(TEAM + "experiments/new/preview", new_experiment.experiment_preview, name="experiment_preview"),
    # Applications, recipes, workloads
    *(path(f"{TEAM}{kind}/", documents.document_list, {"kind": kind}, name=kind) for kind in KINDS),
    *(
        path(f"{TEAM}{kind.plural}/<int:pk>/", documents.document_page, {"kind": kind.plural}, name=kind.singular)
        for kind in KINDS.values()
    ),
    path(TEAM + "<document_kind:kind>/new/", edit.document_new, name="new_document"),
    path(TEAM + "<document_kind:kind>/<int:pk>/edit/", edit.document_edit, name="edit_document"),
    path(TEAM + "<document_kind:kind>/<int:pk>/diff/", documents.document_diff, name="document_diff"),
    path(TEAM + "<document_kind:kind>/<int:pk>/yaml", documents.document_yaml, name="document_yaml"),
    path(TEAM + "<document_kind:kind>/<int:pk>/archive", documents.document_archive, name="archive_document"),
    # Library
    path(TEAM + "library/", library.library, name="library"),
    path(TEAM + "library/published/<slug:name>/", library.library_published, name="library_published"),
    path(TEAM + "library/published/<slug:name>/import", library.library_import, name="library_import"),
    path(TEAM + "library/<slug:name>/", library.library_template, name="library_template"),
    path(TEAM + "library/<slug:name>/fits", library.library_fits, name="library_fits"),
    # Hosts
    path(TEAM + "hosts/", hosts.host_list, name="hosts"),
    path(TEAM + "hosts/new/", hosts.host_new, name="new_host"),
    path(TEAM + "hosts/own/", own.own_hosts, name="own_hosts"),
    path(TEAM + "hosts/own/check", own.check_hosts, name="check_hosts"),
    path(TEAM + "hosts/hardware/", hardware.hardware, name="hardware"),
    path(TEAM + "hosts/reserve", reservations.reserve, name="reserve"),
    path(TEAM + "hosts/reservations/<int:pk>/extend", reservations.extend, name="extend_reservation"),
    path(TEAM + "hosts/reservations/<int:pk>/end", reservations.end, name="end_reservation"),
    path(TEAM + "hosts/<int:pk>/", hosts.host_page, name="host"),
    path(TEAM + "hosts/<int:pk>/edit/", hosts.host_edit, name="edit_host"),
    path(TEAM + "hosts/<int:pk>/profiles/", hosts.profile_diff, name="profile_diff"),
    path(TEAM + "hosts/<int:pk>/<slug:action>", actions.host_action, name="host_action"),
    # Queue
    path(TEAM + "queue/", queue.queue, name="queue"),
    path(TEAM + "queue/<int:number>/cancel", queue.queue_cancel, name="cancel_queued"),
    # Help
    path(TEAM + "help/", help_pages.help_topic, name="help_index"),
    path(TEAM + "help/<slug:topic>/", help_pages.help_topic, name="help"),
    # Operator
    path(TEAM + "operator/", operator.operator, name="operator"),
    path(TEAM + "operator/sites/", sites.sites, name="sites"),
    path(TEAM + "operator/sites/add", sites.add_site, name="add_site"),
    path(TEAM + "operator/sites/change", sites.change_site, name="change_site"),
    path(TEAM + "operator/sites/remove", sites.remove_site, name="remove_site"),
    # Settings
    path(TEAM + "settings/", members.members, name="settings"),
    path(TEAM + "settings/members/<int:pk>", members.member_change, name="member_change"),
    path(TEAM + "settings/invitations", invitations.invite_member, name="invite_member"),
    path(TEAM + "settings/invitations/<int:pk>", invitations.invitation_change, name="invitation_change"),
    path(TEAM + "settings/services", members.service_new, name="new_service"),
    path(TEAM + "settings/team/", team.team, name="team"),
    path(TEAM + "settings/team/leave", team.leave_team, name="leave_team"),
    path(TEAM + "settings/tokens/", members.tokens, name="tokens"),
    path(TEAM + "settings/tokens/<int:pk>/revoke", members.token_revoke, name="revoke_token"),
    path(TEAM + "settings/prometheus/", prometheus.source_list, name="prometheus_sources"),
    path(TEAM + "settings/prometheus/<int:source_id>/", prometheus.source, name="prometheus_source"),
    path(TEAM + "settings/prometheus/<int:source_id>/do", prometheus.source_action, name="prometheus_action"),
    path(TEAM + "settings/webhooks/", webhooks.webhook_list, name="webhooks"),
    path(TEAM + "settings/webhooks/mails", webhooks.choose_mails, name="choose_mails"),
    path(TEAM + "settings/webhooks/<int:webhook_id>/", webhooks.webhook, name="webhook"),
    path(TEAM + "settings/webhooks/<int:webhook_id>/do", webhooks.webhook_action, name="webhook_action"),
    path(
        TEAM + "settings/webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver",
        webhooks.redeliver,
        name="redeliver",
    ),
    path(TEAM + "settings/thresholds/", thresholds.thresholds, name="thresholds"),
    path(TEAM + "settings/thresholds/history/", thresholds.history_limits, name="history_limits"),
    # Sharing
    path(TEAM + "share/", shares.new_share, name="new_share"),
    path(TEAM + "settings/shares/", shares.shares, name="shares"),
    path(TEAM + "settings/shares/<int:pk>/revoke", shares.share_revoke, name="revoke_share"),
    # Deletion, retention, quotas
    path(TEAM + "runs/<int:number>/delete", trash.delete_run, name="delete_run"),
    path(TEAM + "experiments/<int:experiment_id>/delete", trash.delete_experiment, name="delete_experiment"),
    path(TEAM + "settings/trash/", trash.trash, name="trash"),
    path(TEAM + "settings/trash/restore", trash.restore, name="restore_trashed"),
    path(TEAM + "settings/usage/", usage.usage, name="usage"),
    path(TEAM + "settings/usage/retention", usage.retention, name="retention"),
    path(TEAM + "settings/usage/quotas", usage.quotas, name="quotas"),
    path(TEAM + "settings/audit/", audit.audit, name="audit"),
    path(TEAM + "settings/audit/csv", audit.audit_csv, name="audit_csv"),
    path(TEAM + "settings/demo/delete", members.demo_delete, name="delete_demo"),
]
