"""What is due, whose turn it is, how long a run waits."""
