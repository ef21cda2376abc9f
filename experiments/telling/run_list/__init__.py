"""The list of runs: what is wanted, in which order, as rows and as CSV."""
