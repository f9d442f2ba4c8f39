"""Models in this machine's own processes."""
