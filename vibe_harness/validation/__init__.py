"""People check an extractor: a sample of responses, judgments of what was read in them, and what these say."""
