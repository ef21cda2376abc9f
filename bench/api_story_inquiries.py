"""The part of the story that takes many runs: searches, bisections, tuning, asked of a team whose runs are made up."""

from __future__ import annotations

from django.db import transaction

import bench.django_project  # noqa: F401 - before the models
from bench.api_answers import Player
from bench.screenshot_answers import SCALING, Answers
from bench.website import team_with_runs
from experiments.asking.bisections.live import BISECTIONS
from experiments.asking.searches.live import SEARCHES
from experiments.asking.tunings.live import TUNINGS
from experiments.models import Bisection, CapacitySearch, Experiment, Member, Tuning
from experiments.registry.teams.tokens import issue

PICTURES, RUNS = "demo-pictures", 600


def second_team() -> str:
    """Filled where there is none; returns a token for it."""
    team, user = team_with_runs(PICTURES, RUNS)
    member = Member.objects.select_related("team", "user").get(team=team, user=user)
    if not CapacitySearch.objects.for_team(team).exists():
        with transaction.atomic():  # a worker sees only what is over
            _Inquiries(member).everything()
    return issue(member, name="examples", scopes=["read", "launch", "write"])[1]


class _Inquiries(Answers):
    def everything(self) -> None:
        self.documents()
        self.capacity()
        self.scaling()
        self.bisection()
        self.tuning()
        for tuning in Tuning.objects.for_team(self.team).filter(state="running"):
            TUNINGS.cancel(self.member, tuning)
        for search in CapacitySearch.objects.for_team(self.team).filter(state="running"):
            SEARCHES.cancel(self.member, search)
        for bisection in Bisection.objects.for_team(self.team).filter(state="running"):
            BISECTIONS.cancel(self.member, bisection)


def inquiries(player: Player) -> None:
    started = player.ask("start_search")["id"]
    player.ask("cancel_search", search_id=started)
    started = player.ask("start_bisection")["id"]
    player.ask("cancel_bisection", bisection_id=started)
    _tunings(player)
    for noun in ("search", "bisection"):
        plural = "searches" if noun == "search" else "bisections"
        found = player.ask(f"list_{plural}", query={"state": "finished"}, team="pictures")["items"][0]["id"]
        player.ask(f"get_{noun}", team="pictures", **{f"{noun}_id": found})
    player.ask("bisection_verdict", bisection_id=found, query={"wait": 60}, team="pictures")
    scaling = Experiment.objects.get(team__slug=PICTURES, name=SCALING).pk
    player.ask("experiment_scaling", experiment_id=scaling, query={"total_cpus": 64}, team="pictures")


def _tunings(player: Player) -> None:
    started = player.ask("start_tuning")["id"]
    for word in ("pause_tuning", "resume_tuning", "add_tuning_budget", "leave_out_region", "cancel_tuning"):
        player.ask(word, tuning_id=started)
    Tuning.objects.filter(team__slug=PICTURES, outcome="better").update(smallest=None)  # looked for once more below
    found = player.ask("list_tunings", query={"state": "finished"}, team="pictures")["items"][0]["id"]
    player.ask("get_tuning", tuning_id=found, team="pictures")
    player.ask("tuning_effects", tuning_id=found, team="pictures")
    player.ask("tuning_verdict", tuning_id=found, query={"wait": 60}, team="pictures")
    player.ask("save_tuned_recipe", tuning_id=found, team="pictures")
    player.ask("find_smallest_recipe", tuning_id=found, team="pictures")
    player.ask("cancel_tuning", tuning_id=found, team="pictures", keep=False)
