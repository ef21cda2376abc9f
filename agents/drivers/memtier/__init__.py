"""memtier_benchmark: reads and writes to Redis, Valkey or memcached."""
