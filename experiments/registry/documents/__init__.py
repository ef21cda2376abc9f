"""Applications, recipes and workloads: versions, YAML, differences of configurations."""
