"""The answer of a tuning search as a version of its recipe, one click from being the team's baseline."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from django.db import transaction

from experiments.asking.tunings.trials import trials_over
from experiments.asking.tunings.wording import answer_sentence, config_text, smallest_evidence
from experiments.models import Member, Recipe, Role, Team, Tuning
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Conflict
from experiments.registry.teams.access import require


def save_recipe(member: Member, tuning: Tuning, *, without_version: int | None = None) -> Recipe:
    """The newest version of the recipe: the one that was searched, with the answer as its defaults, its evidence as the
    note. The smallest recipe when it is known, else the winner. Safe to repeat.

    Conflict without an answer, and where the recipe has a later version, whose changes would be lost: unless
    `without_version` is the newest one, so that somebody knows.
    """
    require(member, Role.EDITOR)
    if tuning.winner is None:
        raise Conflict("There is no configuration that was confirmed to be better.")
    config = tuning.smallest["config"] if tuning.smallest else tuning.winner
    body = copy.deepcopy(tuning.recipe.body)
    for name, value in {**tuning.parameters, **config}.items():
        body["parameters"][name]["default"] = value
    found = f"Tuning search {tuning.pk}: {config_text(config, tuning.default)}."
    evidence = [found, smallest_evidence(tuning), answer_sentence(tuning, trials_over(tuning))]
    with transaction.atomic():
        # The lock of `save_version`, so that no version comes between the look at the later ones and this one.
        Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
        tuning.refresh_from_db(fields=["smaller_recipe"])
        if tuning.smaller_recipe is not None and is_saved(tuning):
            return tuning.smaller_recipe
        lost = left_out(tuning)
        if lost and lost[-1].version != without_version:
            raise Conflict(
                f"{_named(lost)} came after {tuning.recipe}, which was searched and of which the new version is made: "
                f"what changed meanwhile is not in it. Say that this is meant (without_version={lost[-1].version}), or "
                f"give {lost[-1]} the answer yourself: {config_text(config, tuning.default)}.",
                field="without_version",
            )
        made_of = f"Made of version {tuning.recipe.version}, without what {_named(lost)} changed." if lost else ""
        note = " ".join(filter(None, [made_of, *evidence]))
        note = note if len(note) <= 400 else note[:399] + "…"
        made = save_version(member, Recipe, tuning.recipe.name, body, note=note)
        Tuning.objects.filter(pk=tuning.pk).update(smaller_recipe=made)
    tuning.smaller_recipe = made
    return made


def left_out(tuning: Tuning) -> list[Recipe]:
    """The versions of the recipe since the one that was searched, whose changes no version made of it has, in order.

    Without those for one run, archived ones and what was made of this search; none when all is as it was searched.
    """
    since = Recipe.objects.filter(
        team_id=tuning.team_id, name=tuning.recipe.name, version__gt=tuning.recipe.version, one_off=False,
        archived=False,
    ).exclude(pk=tuning.smaller_recipe_id)  # fmt: skip
    later = list(since.order_by("version"))
    return later if later and later[-1].body != tuning.recipe.body else []


def _named(versions: Sequence[Recipe]) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]} to v{versions[-1].version}"


def is_saved(tuning: Tuning) -> bool:
    """Whether the version that was made of the answer has what is known to be the smallest recipe by now."""
    if tuning.smaller_recipe is None or tuning.winner is None:
        return False
    config = tuning.smallest["config"] if tuning.smallest else tuning.winner
    made = tuning.smaller_recipe.body["parameters"]
    return all(made[name]["default"] == value for name, value in config.items())
