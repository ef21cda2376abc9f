"""The answer of a tuning search as a version of its recipe, one click from being the team's baseline."""

from __future__ import annotations

import copy

from django.db import transaction

from experiments.asking.tunings.trials import trials_over
from experiments.asking.tunings.wording import answer_sentence, config_text, smallest_evidence
from experiments.models import Member, Recipe, Role, Tuning
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Conflict
from experiments.registry.teams.access import require


def save_recipe(member: Member, tuning: Tuning) -> Recipe:
    """The newest version of the recipe with the answer as its defaults, its evidence as the note.

    The smallest recipe when it is known, else the winner. Safe to repeat. Conflict without an answer.
    """
    require(member, Role.EDITOR)
    if tuning.winner is None:
        raise Conflict("There is no configuration that was confirmed to be better.")
    config = tuning.smallest["config"] if tuning.smallest else tuning.winner
    body = copy.deepcopy(tuning.recipe.body)
    for name, value in {**tuning.parameters, **config}.items():
        body["parameters"][name]["default"] = value
    said = " ".join(filter(None, [smallest_evidence(tuning), answer_sentence(tuning, trials_over(tuning))]))
    note = f"Tuning search {tuning.pk}: {config_text(config, tuning.default)}. {said}"
    with transaction.atomic():
        made = save_version(
            member, Recipe, tuning.recipe.name, body, note=note if len(note) <= 400 else note[:399] + "…"
        )
        Tuning.objects.filter(pk=tuning.pk).update(smaller_recipe=made)
    tuning.smaller_recipe = made
    return made


def is_saved(tuning: Tuning) -> bool:
    """Whether the version that was made of the answer has what is known to be the smallest recipe by now."""
    if tuning.smaller_recipe is None or tuning.winner is None:
        return False
    config = tuning.smallest["config"] if tuning.smallest else tuning.winner
    made = tuning.smaller_recipe.body["parameters"]
    return all(made[name]["default"] == value for name, value in config.items())
