"""One module a published corpus: from its own layout to clips."""
