"""Schedules: experiments and runs that are launched again by the clock."""
