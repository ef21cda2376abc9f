"""The generated Python client: every module of it is imported; with an address a run is launched."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys

import made_python  # type: ignore[import-not-found]

for module in pkgutil.walk_packages(made_python.__path__, "made_python."):
    importlib.import_module(module.name)
url, token, body = sys.argv[1:]
if url:
    create_run = importlib.import_module("made_python.api.runs.create_run")
    models = importlib.import_module("made_python.models")
    client = made_python.AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
    run = create_run.sync(client=client, body=models.RunByNames.from_dict(json.loads(body)))
    print(f"Python: run #{run.number} is {run.state.value}")
