"""What lies on disk: the files of a run folder, written and read here alone. Knows no model and starts nothing."""
