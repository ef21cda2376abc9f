"""Where the CPU time went: the flame graph of a run, and functions of two sets of runs side by side."""
