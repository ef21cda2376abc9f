"""A fleet on one machine: simulated hosts at three sites, real workers, a real database, and faults."""
