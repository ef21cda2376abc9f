"""Judging: the evidence of a run, its validity, the verdicts of an experiment and the gate of CI."""
