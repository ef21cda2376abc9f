"""The team's Prometheus sources, and what they are asked after each run."""
