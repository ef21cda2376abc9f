"""iperf3: the bandwidth between two hosts."""
