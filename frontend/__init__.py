"""HTML pages over the record in `experiments`; no models of its own."""
