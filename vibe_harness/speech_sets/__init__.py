"""Making a spoken question set from text: rewritten for the ear, spoken, transcribed, screened, rated."""
