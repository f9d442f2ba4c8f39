"""Extraction: reading attributes, raw and canonical, from free text."""
