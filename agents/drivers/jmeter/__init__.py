"""JMeter: its test plans, its result files, and what it prints."""
