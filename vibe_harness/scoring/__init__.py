"""From observations to results, with coverage beside every score."""
