"""What every form of profile comes to, and what a form must offer."""
