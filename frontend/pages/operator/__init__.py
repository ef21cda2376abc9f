"""The operator's page, across teams."""
