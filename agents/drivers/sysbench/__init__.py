"""sysbench: processors, memory, files and databases."""
