"""Whole data as Parquet: every run with every figure, every point of a series. Nothing is thinned out."""
