"""What is measured: names, units and directions of metrics, a team's own ones among them."""
