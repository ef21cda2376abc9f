"""The queue: what is due, whose turn it is, why a run waits and for how long."""
