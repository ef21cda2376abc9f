"""Hyperfoil, through its wrk and wrk2 commands."""
