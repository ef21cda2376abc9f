"""What an operator sees: workers, queues, canaries, counts and the state of the services."""
