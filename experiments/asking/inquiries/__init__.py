"""Questions that are answered by launching one thing after another: the engine; each kind knows its question only."""
