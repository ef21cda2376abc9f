"""Made-up records: the demonstration's and those of seeded teams."""
