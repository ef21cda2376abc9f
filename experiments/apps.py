from __future__ import annotations

from django.apps import AppConfig

from experiments.registry import events

FOLLOWERS: events.Followers = {
    events.RunEnded: (
        # First: an experiment goes on while one of its runs waits.
        "experiments.asking.launching.retries.run_ended",
        "experiments.telling.notifying.events.run_ended",
        "experiments.telling.notifying.rule_messages.run_ended",
        "experiments.asking.searches.live.run_ended",
        "experiments.asking.bisections.live.run_ended",
        "experiments.asking.tunings.live.run_ended",
        "experiments.telling.observing.tracing.run_ended",
        "experiments.asking.prometheus.reading.run_ended",
    ),
    events.BlocksEnded: ("experiments.asking.launching.stopping.blocks_ended",),
    events.ExperimentEnded: (
        "experiments.telling.notifying.events.experiment_ended",
        "experiments.telling.notifying.rule_messages.experiment_ended",
        "experiments.asking.bisections.live.experiment_ended",
    ),
    events.HostQuarantined: ("experiments.telling.notifying.events.host_quarantined",),
    events.AlertConfirmed: ("experiments.telling.notifying.alert_mails.alert_confirmed",),
    events.ResultsStored: ("experiments.telling.notifying.rule_messages.results_stored",),
    events.OccasionMissed: ("experiments.telling.notifying.events.occasion_missed",),
}
"""Who goes on when something happened on a lower floor. Named, not imported: a short command loads none of them."""


class ExperimentsConfig(AppConfig):
    name = "experiments"

    def ready(self) -> None:
        events.install(FOLLOWERS)
