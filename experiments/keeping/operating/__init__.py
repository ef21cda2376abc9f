"""What an operator sees of queues, broker and workers."""
