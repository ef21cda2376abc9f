"""pprof: the profile of Go, and what Pyroscope, Parca and jfr-converter speak; a protocol buffer, compressed."""
