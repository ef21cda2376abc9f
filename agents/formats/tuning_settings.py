"""Settings of nginx, PostgreSQL and Redis that tune only: numbers, sizes and choices that name no file or program.

Allow-lists, never lists of what is bad: what a server learns tomorrow is not on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_POSTGRESQL = """
autovacuum autovacuum_analyze_scale_factor autovacuum_analyze_threshold autovacuum_freeze_max_age
autovacuum_max_workers autovacuum_naptime autovacuum_vacuum_cost_delay autovacuum_vacuum_cost_limit
autovacuum_vacuum_insert_scale_factor autovacuum_vacuum_insert_threshold autovacuum_vacuum_scale_factor
autovacuum_vacuum_threshold autovacuum_work_mem backend_flush_after bgwriter_delay bgwriter_flush_after
bgwriter_lru_maxpages bgwriter_lru_multiplier checkpoint_completion_target checkpoint_flush_after checkpoint_timeout
commit_delay commit_siblings constraint_exclusion cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost
cursor_tuple_fraction deadlock_timeout debug_io_direct default_statistics_target default_toast_compression
effective_cache_size effective_io_concurrency enable_async_append enable_bitmapscan enable_gathermerge enable_hashagg
enable_hashjoin enable_incremental_sort enable_indexonlyscan enable_indexscan enable_material enable_memoize
enable_mergejoin enable_nestloop enable_parallel_append enable_parallel_hash enable_partition_pruning
enable_partitionwise_aggregate enable_partitionwise_join enable_seqscan enable_sort enable_tidscan from_collapse_limit
fsync full_page_writes geqo geqo_threshold gin_fuzzy_search_limit gin_pending_list_limit hash_mem_multiplier
huge_page_size huge_pages idle_in_transaction_session_timeout io_combine_limit io_max_combine_limit io_max_concurrency
io_method io_workers jit jit_above_cost jit_inline_above_cost jit_optimize_above_cost join_collapse_limit lock_timeout
log_checkpoints log_connections log_disconnections log_duration log_lock_waits log_min_duration_statement
log_statement log_temp_files logical_decoding_work_mem maintenance_io_concurrency maintenance_work_mem max_connections
max_files_per_process max_locks_per_transaction max_parallel_maintenance_workers max_parallel_workers
max_parallel_workers_per_gather max_pred_locks_per_transaction max_prepared_transactions max_stack_depth
max_wal_senders max_wal_size max_worker_processes min_dynamic_shared_memory min_parallel_index_scan_size
min_parallel_table_scan_size min_wal_size old_snapshot_threshold parallel_leader_participation parallel_setup_cost
parallel_tuple_cost plan_cache_mode random_page_cost recovery_prefetch seq_page_cost shared_buffers statement_timeout
synchronize_seqscans synchronous_commit temp_buffers temp_file_limit track_activities track_activity_query_size
track_commit_timestamp track_counts track_functions track_io_timing track_wal_io_timing vacuum_buffer_usage_limit
vacuum_cost_delay vacuum_cost_limit vacuum_cost_page_dirty vacuum_cost_page_hit vacuum_cost_page_miss wal_buffers
wal_compression wal_init_zero wal_keep_size wal_level wal_log_hints wal_recycle wal_skip_threshold wal_sync_method
wal_writer_delay wal_writer_flush_after work_mem
"""
POSTGRESQL = frozenset(_POSTGRESQL.split())
_REDIS = """
active-defrag-cycle-max active-defrag-cycle-min active-defrag-ignore-bytes active-defrag-max-scan-fields active-
defrag-threshold-lower active-defrag-threshold-upper active-expire-effort activedefrag activerehashing aof-rewrite-
incremental-fsync aof-use-rdb-preamble appendfsync auto-aof-rewrite-min-size auto-aof-rewrite-percentage client-
output-buffer-limit client-query-buffer-limit databases dynamic-hz events-per-io-thread hash-max-listpack-entries
hash-max-listpack-value hash-max-ziplist-entries hash-max-ziplist-value hll-sparse-max-bytes hz io-threads io-threads-
do-reads jemalloc-bg-thread latency-tracking lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del
lazyfree-lazy-user-del lazyfree-lazy-user-flush lfu-decay-time lfu-log-factor list-compress-depth list-max-listpack-
size list-max-ziplist-size maxclients maxmemory maxmemory-clients maxmemory-eviction-tenacity maxmemory-policy
maxmemory-samples no-appendfsync-on-rewrite oom-score-adj prefetch-batch-max-size proto-max-bulk-len rdbchecksum
rdbcompression rdb-save-incremental-fsync set-max-intset-entries set-max-listpack-entries set-max-listpack-value
slowlog-log-slower-than slowlog-max-len stop-writes-on-bgsave-error stream-node-max-bytes stream-node-max-entries tcp-
backlog tcp-keepalive timeout tracking-table-max-keys zset-max-listpack-entries zset-max-listpack-value zset-max-
ziplist-entries zset-max-ziplist-value
"""
REDIS = frozenset(_REDIS.replace("-\n", "-").split())
_NGINX = """
accept_mutex client_body_buffer_size client_header_buffer_size gzip gzip_comp_level gzip_min_length http2
keepalive_disable keepalive_requests keepalive_time keepalive_timeout large_client_header_buffers lingering_close
lingering_time multi_accept open_file_cache open_file_cache_min_uses open_file_cache_valid output_buffers
postpone_output proxy_buffer_size proxy_buffering proxy_buffers proxy_busy_buffers_size read_ahead
reset_timedout_connection send_lowat sendfile sendfile_max_chunk ssl_buffer_size ssl_early_data
ssl_prefer_server_ciphers ssl_protocols ssl_session_tickets ssl_session_timeout tcp_nodelay tcp_nopush
timer_resolution worker_connections worker_cpu_affinity worker_priority worker_processes worker_rlimit_nofile
"""
NGINX = frozenset(_NGINX.split())
BY_FILE: Mapping[str, frozenset[str]] = {"nginx.conf": NGINX, "postgresql.conf": POSTGRESQL, "redis.conf": REDIS}
"""By the file of an instance in which they stand."""

_WORDS = re.compile(r"[A-Za-z0-9_.:%+-]+(?: [A-Za-z0-9_.:%+-]+)*")


def setting_is_harmless(known: frozenset[str], name: str, value: str) -> bool:
    """Whether the setting is one of these, with a value of plain words; quotes as postgresql.conf has them may stand
    around it.
    """
    inner = value[1:-1] if len(value) > 1 and value[0] == value[-1] == "'" else value
    return name in known and _WORDS.fullmatch(inner) is not None
