"""What tuning steps have in common: the class of a step, files on a host and where they may be, sysfs settings."""
