"""Alerts: change points and missing data, from the trend that shows them to the person who triages them."""
