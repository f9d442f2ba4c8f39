"""Registered metrics: observations in, scores out; one small file each.

Each is a plain function on a data frame too:

    from vibe_harness.metrics.ntvd import ntvd
    from vibe_harness.metrics.metric import Settings

    scores = ntvd(frame, Settings(tau=3))

and so are `refusal_ntvd` and `diversity`. The frame's columns are those that `registry.Metric` names; a run's own frame
is `vibe_harness.store.run_tables.read_frame(RUN / "observations.parquet", task, variant, dimension)`.
"""
