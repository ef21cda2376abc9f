"""The search for the best configuration of a recipe and what may be claimed of it. Pure; the course: docs/tuning.md."""
