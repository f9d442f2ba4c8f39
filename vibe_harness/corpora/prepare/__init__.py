"""Preparing a published corpus: selecting, perturbing and describing its clips."""
