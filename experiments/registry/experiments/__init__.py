"""What an experiment is asked to do: its rules and the order of its blocks."""
