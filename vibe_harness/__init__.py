"""Measures how far an audio-language model's answers shift with the voice that asks."""
