"""What a team's own Prometheus saw around a run, read after its end as channels of the run."""
