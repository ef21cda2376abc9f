"""Pure numbers: what repetitions, reports and host figures say. Knows neither Django nor the agents."""
