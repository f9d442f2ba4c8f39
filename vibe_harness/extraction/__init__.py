"""From free text to attributes: what a response says, kept raw and canonical side by side."""
