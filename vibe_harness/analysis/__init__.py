"""What reads finished runs: comparison, gates, checks. Opens no engine."""
