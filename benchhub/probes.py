"""The addresses that a machine asks, not a person: apart from what answers them, for those that only ask."""

LIVE = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
