"""Many models, tasks and corpora in one file."""
