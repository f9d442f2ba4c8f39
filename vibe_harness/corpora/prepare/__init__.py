"""From a published corpus to a prepared folder: selected, perturbed, described."""
