"""Bisection: the first of an ordered list of candidates that is worse than the good one."""
