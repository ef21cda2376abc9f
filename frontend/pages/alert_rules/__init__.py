"""Alert rules: what a team wants to be told of besides changes of level."""
