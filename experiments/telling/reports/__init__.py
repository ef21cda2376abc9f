"""Reports: an experiment's answer with all that a reader needs to believe it, as a page, Markdown and CSV."""
