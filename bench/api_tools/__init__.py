"""Other people's tools against the description of the API: they read it, and generate clients that launch a run."""
