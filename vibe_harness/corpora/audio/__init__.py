"""Reading and checking recordings."""
