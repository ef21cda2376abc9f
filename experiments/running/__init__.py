"""From claimed to ended."""
