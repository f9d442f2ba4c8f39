"""The stages of a run: generate, extract, observe, score."""
