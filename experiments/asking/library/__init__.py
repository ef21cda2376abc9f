"""What BenchHub ships as YAML: applications, recipes, workloads, experiments, and figures that others published."""
