"""What belongs to one run: numbers, files, parameters, series, baselines."""
