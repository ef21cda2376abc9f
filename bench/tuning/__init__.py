"""The game of tuning: labs that are simulated, policies that spend a budget in them, and scores of what they claim."""
