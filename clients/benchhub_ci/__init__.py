"""benchhub-ci, the client for CI: Python 3.8 and its standard library; `experiments.api.cli` serves it as one file."""
