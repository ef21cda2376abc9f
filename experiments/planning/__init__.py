"""The course of an experiment: its order, its rules, what it will cost, and what follows."""
