"""The addresses that a machine asks, not a person: apart from what answers them, for those that only ask."""

LIVE = "/healthz"
READY = "/readyz"
METRICS = "/metrics"

SHARED_COUNTS = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that tells prometheus_client, before it is loaded, where several web processes add up their figures."""
