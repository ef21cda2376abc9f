"""The client for Python: a distribution of its own (pyproject.toml); `benchhub_client` is what it installs."""
