"""Applications, recipes and workloads: versions of documents, and their YAML."""
