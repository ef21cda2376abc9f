"""pgbench: transactions on PostgreSQL."""
