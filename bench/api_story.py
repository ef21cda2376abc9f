"""The calls whose answers become the examples of the OpenAPI schema, in an order in which all of them succeed.

Two runs are really executed on the demonstration's hosts. What takes many of them (an experiment with its verdict, a
rate search, a scaling measurement, a bisection, a tuning) is asked of a second team; bench.screenshot_answers makes up
its runs.
"""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

from django.utils import timezone

import bench.django_project  # noqa: F401 - before the models
from bench.api_answers import Player, Refused
from bench.api_story_inquiries import PICTURES, inquiries, second_team
from experiments.api.plumbing.examples import BODIES
from experiments.models import Delivery, Experiment, Host, Member, Role, Run
from experiments.registry.teams.members import add_member
from experiments.registry.teams.tokens import SCOPES, issue

FIRST_RUN = 141
"""The number of the story's first run, as the examples of bodies name it; results fill the numbers before it."""
MOST_TRIES = 10
REPORT_FORMS = (
    ("text/markdown", "markdown"),
    ("text/csv", "csv"),
    ("application/pdf", "pdf"),
    ("application/json", "json"),
)
"""What comes back of a report, and its format's name; JSON last, whose address stays as the example."""
PHASES = [
    {"name": "warm-up", "kind": "warm_up", "duration_s": 2},
    {"name": "load", "kind": "measure", "duration_s": 6},
]


def prepare() -> dict[str, str]:
    """A token for the demonstration's team, which gets a second person."""
    demo = Member.objects.select_related("team", "user").get(team__slug="demo", user__username="demo")
    if not demo.team.members.filter(user__username="ada").exists():
        add_member(demo, "ada", Role.EDITOR)
    return {"demo": issue(demo, name="examples", scopes=SCOPES)[1]}


def tell(player: Player) -> None:
    """Every call; the demonstration's own experiment makes room for them."""
    if player.ask("get_experiment", experiment_id=1, keep=False)["state"] == "running":
        player.ask("cancel_experiment", experiment_id=1)
    _team(player)
    _hosts(player)
    _documents(player)
    _results(player)
    _runs(player)
    _experiments(player)
    inquiries(player)
    _history(player)
    _automation(player)
    _library(player)
    _links(player)
    _ends(player)


def _team(player: Player) -> None:
    for name in ("me", "get_team", "list_members", "list_metrics", "list_thresholds"):
        player.ask(name)
    player.ask("change_own_team")
    player.ask("change_member", user="ada")
    player.ask("create_service")
    service = next(one for one in player.ask("list_members", keep=False) if one["user"].endswith("ci"))
    invitation = player.ask("create_invitation")
    player.ask("list_invitations")
    player.ask("resend_invitation", invitation_id=invitation["id"])
    player.ask("delete_invitation", invitation_id=invitation["id"])
    token = player.ask("create_token")
    player.ask("list_tokens")
    player.ask("revoke_token", token_id=token["id"])
    player.ask("delete_member", user=service["user"])
    player.ask("set_history_limits")
    player.ask("list_history_limits")
    player.ask("set_thresholds")
    player.ask("set_thresholds", body={"values": {"error_budget_ratio": None}}, keep=False)


def _offered(player: Player) -> str | None:
    """The key of the second name, asked for anew: nobody logs in to a machine that is measured."""
    player.ask("check_host", name="sut-2", keep=False)
    found: str | None = player.ask("get_host", name="sut-2", keep=False)["offered_fingerprint"]
    return found


def _hosts(player: Player) -> None:
    player.ask("create_host")
    player.ask("remove_host", name="sut-1")
    for name in ("sut", "driver"):
        player.ask("change_host", name=name, body={"name": f"{name}-1"}, keep=False)
    sut = player.ask("change_host", name="sut-1")
    other = {key: sut[key] for key in ("address", "port", "user")} | {"name": "sut-2", "roles": "sut"}
    player.ask("create_host", body=other, keep=False)
    offered = player.until(lambda: _offered(player))
    player.ask("approve_host_key", name="sut-2", body={"fingerprint": offered})
    player.ask("drain_host", name="sut-2")
    player.ask("drain_host", name="sut-2", body={"drained": False}, keep=False)
    player.ask("check_host", name="sut-1")
    player.ask("grant_host", name="sut-1")
    player.ask("list_host_profiles", name="sut-1")
    profiles = player.ask("list_profiles")
    player.ask("get_profile", digest=profiles[0]["digest"])
    player.ask("get_host", name="sut-1")
    player.ask("check_host_speed", name="sut-1")
    player.until(lambda: player.ask("get_host", name="sut-1", keep=False)["canaries"]["state"] != "pending")
    player.ask("list_host_canaries", name="sut-1")
    player.ask("list_hosts", query={"name__in": "sut-1,driver-1"})
    player.ask("list_sites")
    hours = [(timezone.now() + timedelta(hours=count)).isoformat() for count in (2, 3)]
    reservation = player.ask("create_reservation", body=BODIES["create_reservation"] | {"until": hours[0]})
    player.ask("change_reservation", reservation_id=reservation["id"], body={"until": hours[1]})
    player.ask("list_reservations")
    player.ask("end_reservation", reservation_id=reservation["id"])


def _documents(player: Player) -> None:
    server = player.ask("get_application", name="Tomcat 11 examples", keep=False)["body"]
    with socket.socket() as probe:  # another demonstration may have the usual port
        probe.bind((player.ask("get_host", name="sut-1", keep=False)["address"], 0))
        server["server"]["port"] = probe.getsockname()[1]
    player.ask("save_application", name="tomcat", body=server, query={"note": "from the demonstration"})
    player.ask("save_application", name="tomcat", body=server, query={"note": "from the demonstration"})
    recipe: dict[str, Any] = BODIES["save_recipe"]
    for nofile in (4096, 8192):
        given = {"parameters": {"nofile": {"type": "int", "default": nofile}}}
        player.ask("save_recipe", name="limits", body=recipe | given, keep=False)
    workload: dict[str, Any] = BODIES["save_workload"]
    rate = {"kind": "wrk2", "connections": 128, "threads": 8, "offered_rate_rps": 1000}
    player.ask("save_workload", name="home at a rate", body=workload | {"driver": rate}, keep=False)
    for name, document, body in (("recipe", "limits", recipe), ("workload", "home", workload)):
        player.ask(f"save_{name}", name=document, body=body)
        player.ask(f"save_{name}", name=document, body=body)
    cpus = player.ask("get_workload", name="HelloWorld servlet, wrk", keep=False)["body"]["cpus"]
    short = workload | {"phases": PHASES, "path": "/examples/servlets/servlet/HelloWorldExample", "cpus": cpus}
    player.ask("save_workload", name="home", body=short, keep=False)
    player.ask("save_application", name="tomcat", body=server | {"description": "Tomcat's own examples."}, keep=False)
    for name, document in (("application", "tomcat"), ("recipe", "limits"), ("workload", "home")):
        player.ask(f"list_{name}s")
        player.ask(f"get_{name}", name=document)
        player.ask(f"get_{name}_yaml", name=document, accept="application/yaml")
        player.ask(f"list_{name}_versions", name=document, query={"limit": 1})
        player.ask(f"diff_{name}", name=document, query={"a": 1, "b": 2})
    player.ask("read_jmeter_plan")


def _results(player: Player) -> None:
    made = player.ask("create_result")
    player.ask("add_result_series", number=made["number"])
    result = player.operations["create_result"][2]["requestBody"]["content"]["application/json"]["example"]
    filling = [result for _ in range(made["number"] + 3, FIRST_RUN)]
    player.ask("create_results")
    if filling:
        player.ask("create_results", body={"results": filling}, keep=False)
    player.ask("create_import")
    player.ask("change_metric", name="cart_age_ms")


def _runs(player: Player) -> None:
    dry = player.ask("start_dry_run")["id"]
    player.until(lambda: player.ask("get_dry_run", dry_run_id=dry)["state"] != "pending")
    first = player.ask("create_run")["number"]
    second = player.ask("rerun", number=first)["number"]
    player.ask("change_run", number=second)  # it waits for the first one's hosts
    third = player.ask("rerun", number=first, keep=False)["number"]
    player.ask("cancel_run", number=third)
    player.finish(first)
    second = _valid_one(player, second)
    player.ask("write_run_notes", number=second)
    player.ask("get_run_notes", number=second)
    player.ask("get_run", number=second)
    player.ask("run_verdict", number=second, query={"wait": 60})
    player.ask("list_events", number=second, accept="text/event-stream")
    player.ask("list_events", number=second, query={"after": 2})
    player.ask("get_log", number=second, query={"limit": 2})
    player.ask("get_config", number=second)
    player.ask("list_samples", number=second, query={"channel": "cpu_set.busy_ratio"})
    player.ask("list_figures", number=second)
    player.ask("list_load_parts", number=second)
    artifact = player.ask("list_artifacts", number=second)[0]["name"]
    player.ask("get_artifact", number=second, name=artifact, accept="*/*")
    for accept, name in REPORT_FORMS:
        player.ask("run_report", number=second, query={"format": name}, accept=accept)
    measured_at = player.ask("get_run", number=second, keep=False)["measured_at"]
    player.ask("create_recording", number=second, body=BODIES["create_recording"] | {"started_at": measured_at})
    for number in (first, second):
        player.ask("import_timers", number=number)
    player.ask("list_timers", number=second)
    for number in (first, second):
        player.ask("add_run_profile", number=number)
    profile = player.ask("list_run_profiles", number=second)[0]["name"]
    player.ask("get_run_profile", number=second, name=profile, accept="*/*")
    player.ask("compare_functions", query={"before": first, "after": second})
    player.ask("compare_timers", query={"runs": f"{first},{second}"})
    player.ask("compare_runs", query={"baseline": first, "candidate": second})
    for name in ("tag_runs", "list_runs", "list_runs_csv", "untag_runs", "archive_runs", "unarchive_runs"):
        if name.startswith("list"):
            query = {"label": "commit=abc123", "state": "finished", "sort": "-throughput_rps"}
            player.ask(name, query=query | ({"columns": "number,throughput_rps"} if name.endswith("csv") else {}))
        else:
            player.ask(name)
    player.ask("search", query={"q": "tomcat"})
    player.ask("get_queue")
    player.ask("get_mails")
    player.ask("change_mails")
    player.ask("runs_parquet", query={"validity": "valid"})
    player.ask("samples_parquet", number=first)
    _prometheus(player, second)
    for number in player.ask("rerun_runs")["queued"]:
        player.ask("cancel_run", number=number, keep=False)


def _prometheus(player: Player, number: int) -> None:
    """A source that nobody answers for: the demonstration has none."""
    source = player.ask("create_prometheus_source")["id"]
    player.ask("list_prometheus_sources")
    player.ask("get_prometheus_source", source_id=source)
    player.ask("try_prometheus_source", source_id=source)
    player.ask("read_run_again", number=number)
    player.until(lambda: player.ask("list_run_readings", number=number, keep=False)[0]["tries"])
    player.ask("list_run_readings", number=number)
    player.ask("change_prometheus_source", source_id=source)
    player.ask("delete_prometheus_source", source_id=source)


def _valid_one(player: Player, number: int) -> int:
    """The run, or the first one like it that is valid: on a busy machine most are not, and a reader sees this first."""
    for _ in range(MOST_TRIES):
        run = player.finish(number)
        if run["validity"] == "valid":
            return number
        number = player.ask("rerun", number=number, keep=False)["number"]
    why = [one["sentence"] for one in run["findings"] if one["level"] in ("invalid", "warn")]
    raise Refused(f"None of {MOST_TRIES} runs was valid; record on a quiet machine. The last one: {' '.join(why)}")


def _experiments(player: Player) -> None:
    player.ask("forecast_experiment")
    made = player.ask("create_experiment")["id"]
    player.ask("change_experiment", experiment_id=made)
    player.ask("launch_experiment", experiment_id=made)
    player.ask("pause_experiment", experiment_id=made)
    player.ask("resume_experiment", experiment_id=made)
    player.ask("list_experiments", query={"name": "more open files"})
    player.ask("write_experiment_notes", experiment_id=made)
    player.ask("get_experiment_notes", experiment_id=made)
    copy = player.ask("launch_copy")["id"]
    for one in (made, copy):
        player.ask("cancel_experiment", experiment_id=one)
    player.until(lambda: player.ask("get_experiment", experiment_id=made, keep=False)["state"] == "cancelled")
    player.ask("set_experiment_baseline", experiment_id=made)
    player.tokens["pictures"] = second_team()
    over = Experiment.objects.filter(team__slug=PICTURES, state="finished").earliest("pk").pk
    player.ask("get_experiment", experiment_id=over, team="pictures")
    player.ask("experiment_verdict", experiment_id=over, query={"wait": 60}, team="pictures")
    player.ask("experiment_ranking", experiment_id=over, team="pictures")
    player.ask("experiment_functions", experiment_id=over, team="pictures")
    player.ask("experiment_why", experiment_id=over, team="pictures")
    for accept, name in REPORT_FORMS:
        player.ask("experiment_report", experiment_id=over, query={"format": name}, accept=accept, team="pictures")


def _history(player: Player) -> None:
    alert = player.ask("list_alerts", query={"triage": "open", "kind": "change"})["items"][0]["id"]
    player.ask("get_alert", alert_id=alert)
    player.ask("alert_why", alert_id=alert)
    player.ask("change_alert", alert_id=alert)
    rule = player.ask("create_alert_rule")["id"]
    player.ask("list_alert_rules")
    player.ask("change_alert_rule", rule_id=rule)
    player.ask("get_alert_rule", rule_id=rule)
    player.ask("delete_alert_rule", rule_id=rule)
    nightly = next(one for one in player.ask("list_series") if "demo history" in one["tool"])
    fingerprint = nightly["fingerprint"]
    recipe = {"recipe": "Tomcat default"}
    player.ask("get_history", fingerprint=fingerprint, query={"metric": "throughput_rps"} | recipe)
    player.ask("expect_present_level", fingerprint=fingerprint, body=BODIES["expect_present_level"] | recipe)
    sent = player.answers["create_result"]["answers"]["201"]["application/json"]["number"]
    player.ask("save_baseline", name="release 4.2", body={"run": sent})  # a run on a busy machine may be invalid
    player.ask("get_baseline", name="release 4.2")
    player.ask("list_baselines")
    player.ask("delete_baseline", name="release 4.2")
    note = player.ask("create_annotation")["id"]
    player.ask("change_annotation", annotation_id=note)
    player.ask("list_annotations", query={"run": BODIES["create_annotation"]["run"]})
    player.ask("list_grafana_annotations", query={"kinds": "run,measured,step,note"})
    player.ask("delete_annotation", annotation_id=note)
    view = player.ask("create_view")["id"]
    player.ask("change_view", view_id=view)
    player.ask("get_view", view_id=view)
    player.ask("list_views")
    player.ask("delete_view", view_id=view)


def _automation(player: Player) -> None:
    schedule = player.ask("create_schedule")["id"]
    player.ask("change_schedule", schedule_id=schedule)
    player.ask("pause_schedule", schedule_id=schedule)
    player.ask("resume_schedule", schedule_id=schedule)
    player.ask("get_schedule", schedule_id=schedule)
    player.ask("list_schedules")
    player.ask("delete_schedule", schedule_id=schedule)
    webhook = player.ask("create_webhook")["id"]
    delivery = player.ask("test_webhook", webhook_id=webhook)["id"]
    player.until(lambda: player.ask("list_deliveries", webhook_id=webhook, keep=False)["items"][0]["attempts"])
    player.ask("list_deliveries", webhook_id=webhook)
    Delivery.objects.filter(pk=delivery).update(state=Delivery.State.GIVEN_UP, next_at=None)  # as after a day of tries
    player.ask("redeliver", webhook_id=webhook, delivery_id=delivery)
    player.ask("list_webhooks")
    player.ask("get_webhook", webhook_id=webhook)
    player.ask("rotate_webhook_secret", webhook_id=webhook)
    player.ask("change_webhook", webhook_id=webhook)
    player.ask("delete_webhook", webhook_id=webhook)


def _library(player: Player) -> None:
    found = player.ask("list_library")
    player.ask("get_template", name="tomcat-baseline")
    player.ask("get_template_yaml", name="tomcat-baseline", accept="application/yaml")
    player.ask("install_template", name="tomcat-baseline")
    player.ask("import_figures", name=found["published"][0]["name"])
    kernels = player.ask("import_figures", name="linux-two-kernels", keep=False)
    player.ask("machine_factors", query={"runs": ",".join(str(one["number"]) for one in kernels)})


def _links(player: Player) -> None:
    link = player.ask("create_share")["id"]
    player.ask("list_shares")
    player.ask("revoke_share", share_id=link)


def _ends(player: Player) -> None:
    """What takes something away, and what only a damaged host can do."""
    player.ask("move_to_trash")
    player.ask("list_trash")
    player.ask("restore_from_trash")
    for name in ("application", "recipe", "workload"):
        document = {"application": "tomcat", "recipe": "limits", "workload": "home"}[name]
        player.ask(f"archive_{name}", name=document)
        player.ask(f"unarchive_{name}", name=document)
    run = Run.objects.get(team__slug="demo", number=FIRST_RUN + 1)
    for name, operation in (("sut-1", "restore_host"), ("sut-2", "clear_dirty_host")):
        Host.objects.filter(team__slug="demo", name=name).update(
            state=Host.State.DIRTY, state_reason="vm.swappiness is 10; it was 60", dirty_run=run
        )
        player.ask(operation, name=name)
    player.ask("list_audit", query={"action": "host"})
