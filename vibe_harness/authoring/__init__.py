"""For people who add to the harness: skeletons of cards, a check of what a run would trip over, aliases from runs."""
