"""What the simulated load tool prints."""

from __future__ import annotations


def wrk_report(seconds: int) -> bytes:
    """wrk's report of a load of so many seconds, always with the same figures."""
    requests = 1000 * seconds
    return f"""Running {seconds}s test @ http://127.0.0.1/
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.86ms  140.00us   9.13ms   92.00%
    Req/Sec     1.00k    50.00     1.20k    70.00%
  Latency Distribution
     50%    1.80ms
     75%    1.95ms
     90%    2.10ms
     99%    3.20ms
  {requests} requests in {seconds}.00s, {requests / 1000:.2f}MB read
Requests/sec:   1000.00
Transfer/sec:      1.00MB
""".encode()
