"""Which pages the pictures of docs/pages.md show: data for bench.screenshots, one line per page of frontend/urls.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Look = Literal["light", "dark", "narrow"]


@dataclass(frozen=True)
class Shot:
    """A page's picture: its caption, what is in its address beside the object, in which looks it is taken.

    `scroll_to` is what must be seen (CSS); without it the picture shows the top of the page. `page` is its page where
    the name is not, as of a further picture of the same one.
    """

    caption: str
    query: str = ""
    looks: tuple[Look, ...] = ("light",)
    scroll_to: str = ""
    page: str = ""


ALL: tuple[Look, ...] = ("light", "dark", "narrow")
PAGES: dict[str, Shot] = {
    "overview": Shot("Overview: what runs, what was found, the state of the hosts", looks=ALL),
    "find": Shot("Search over everything that the team has", query="q=tomcat"),
    "runs": Shot("Runs: filters, columns, what changed against the baseline", looks=ALL),
    "baselines": Shot("Pinned baselines"),
    "new_run": Shot("A new run, with the commands that it will send"),
    "import_run": Shot("A report of a load tool that ran elsewhere becomes a run"),
    "add_recording": Shot("What nmon, mpstat or top recorded is put beside a run's samples"),
    "run": Shot("One run: figures, validity, phases and the timeline", looks=ALL),
    "run_log_page": Shot("The log of a run: its steps, any line by its number, a search", looks=("light", "dark")),
    "run_profile": Shot("The flame graph of a run: where the CPU time went", looks=ALL),
    "functions": Shot(
        "What requests cost in each function, before and after", query="experiment={profiled}", looks=ALL
    ),
    "compare": Shot("Two runs side by side, and what differs in their configuration", query="runs={pair}"),
    "experiments": Shot("Experiments"),
    "new_experiment": Shot("A new experiment: variants, repetitions, when it stops"),
    "experiment": Shot("An experiment: its verdicts and the table of its runs", looks=("light", "dark")),
    "experiment_report": Shot("The report of an experiment"),
    "scaling": Shot("Throughput over the number of CPUs"),
    "gate": Shot("The gate of an experiment: what a pipeline is told, and by which rules"),
    "searches": Shot("Rate searches: the largest rate that a server sustains"),
    "new_search": Shot("A new rate search"),
    "search": Shot(
        "A rate search: its trials and the interval of the limit",
        looks=("light", "dark"),
        scroll_to="[data-chart=curve]",
    ),
    "bisections": Shot("Bisections: which change made it slower"),
    "new_bisection": Shot("A new bisection"),
    "bisection": Shot("A bisection: what was tried, and the first bad one", looks=("light", "dark")),
    "tunings": Shot("Tuning searches: the best configuration of a recipe"),
    "new_tuning": Shot("A new tuning search"),
    "tuning": Shot("A tuning search: the answer, its smallest recipe and every trial", looks=("light", "dark")),
    "schedules": Shot("Schedules"),
    "new_schedule": Shot("A new schedule"),
    "schedule": Shot("One schedule"),
    "edit_schedule": Shot("A schedule is changed"),
    "trends": Shot("Trends: the history of a series with its change points and notes", looks=ALL),
    "alerts": Shot("Alerts: change points that nobody has looked at"),
    "alert_rules": Shot("Alert rules: what the team wants to be told of besides changes of level"),
    "alert_rule": Shot("An alert rule is changed"),
    "alert": Shot("One alert, and what changed in the configuration at that point"),
    "applications": Shot("Applications"),
    "application": Shot("One application"),
    "recipes": Shot("Recipes"),
    "recipe": Shot("One recipe: its steps and its versions"),
    "workloads": Shot("Workloads"),
    "workload": Shot("One workload"),
    "new_document": Shot("A new recipe"),
    "edit_document": Shot("A recipe is changed: a new version"),
    "document_diff": Shot("Two versions of a recipe"),
    "library": Shot("The library that comes with BenchHub"),
    "library_template": Shot("One entry of the library"),
    "library_published": Shot("Published figures, judged by the same checks"),
    "hosts": Shot("Hosts: who has them until when"),
    "new_host": Shot("A new host"),
    "own_hosts": Shot("Add your own hosts: what to do on a machine, and what each host lacks", looks=ALL),
    "host": Shot("One host"),
    "edit_host": Shot("A host is changed"),
    "hardware": Shot("The hardware of two machines side by side"),
    "profile_diff": Shot("Two hardware profiles of a host"),
    "queue": Shot("The queue: order, reasons, expected times"),
    "help_index": Shot("Help"),
    "help": Shot("Help: every check of validity"),
    "operator": Shot("What the operator sees"),
    "sites": Shot("The sites of the installation, for its staff"),
    "settings": Shot("Settings: the members of the team"),
    "invitation": Shot("What somebody sees who was invited"),
    "team": Shot("Settings: the team"),
    "tokens": Shot("Settings: tokens for the API"),
    "prometheus_sources": Shot("Settings: Prometheus"),
    "prometheus_source": Shot("One Prometheus source and its queries"),
    "webhooks": Shot("Settings: webhooks"),
    "webhook": Shot("One webhook and its deliveries"),
    "thresholds": Shot("Settings: the thresholds of the checks"),
    "history_limits": Shot("Settings: the limits of the search for change points"),
    "new_share": Shot("Something is shared by a link", query="kind=run&runs={shared_run}"),
    "shared_page": Shot("What somebody sees who was sent a link"),
    "shares": Shot("Settings: shared links"),
    "trash": Shot("Settings: the trash"),
    "usage": Shot("Settings: what the team uses"),
    "audit": Shot("Settings: who changed what, with the values before and after"),
}
MORE: dict[str, Shot] = {
    "run-system": Shot(
        "A run of a system of several hosts: the figures of its members, and which one is the limit",
        looks=ALL,
        scroll_to="#members",
        page="run",
    ),
    "compare-system": Shot(
        "Two runs of a system side by side", query="runs={system_pair}", scroll_to="#limits", page="compare"
    ),
}
"""Further pictures of pages that have one above."""
NO_PICTURE = {
    "home": "sends people on to their team",
    "new_team": "of nobody's team",
    "shared_embed": "a part of it for other sites",
}
"""Pages without one, and why."""
