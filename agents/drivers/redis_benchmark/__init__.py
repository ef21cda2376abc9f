"""redis-benchmark: commands to Redis or Valkey."""
