"""YCSB: operations on a database or cache."""
