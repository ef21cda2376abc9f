"""JMeter's result files (JTL), CSV or XML, of any size."""
