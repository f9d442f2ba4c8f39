"""From what was asked to the requests of a run: everything is found, loaded and checked before an engine starts."""
