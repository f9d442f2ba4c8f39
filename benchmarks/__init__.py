"""Ratios measured side by side; each script prints its figures and ends with 1 where an aim is missed."""
