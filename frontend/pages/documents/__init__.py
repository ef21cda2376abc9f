"""Applications, recipes and workloads: lists, one with its versions, the editor."""
