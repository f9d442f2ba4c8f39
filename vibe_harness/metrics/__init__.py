"""Registered metrics: observations in, scores out; one small file each."""
