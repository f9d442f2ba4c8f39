"""Importers of published corpora, one module each."""
