"""Results of a task against which nothing speaks, and the parts of which tests make others."""

from __future__ import annotations

from vibe_harness.records import Reading, Score
from vibe_harness.store.results import GroupCoverage, Results, TaskResult


def group(speakers: int = 12, errors: int = 0) -> GroupCoverage:
    outcomes = {"ok": 48 - errors, "error": errors}
    readings = {"job": dict.fromkeys(map(str, Reading), 0)}
    return GroupCoverage(
        speakers=speakers, clips=48, requests=48, outcomes=outcomes, readings=readings, items_per_response={"job": 1.0}
    )


def attribute(name: str, women: float, men: float, p_value: float) -> Score:
    detail = {
        "kept_share": (women + men) / 2,
        "kept_share_by_group": {"women": women, "men": men},
        "filter": {"left_out_share": 0.3, "kept_difference": 100 * abs(women - men), "kept_p": p_value},
    }
    return Score(metric="ntvd", attribute=name, value=20.0, detail=detail)


WHOLE = Score(metric="ntvd", value=20.0, p_value=0.01, smallest_p=0.0001)
ALIKE = Score(metric="diversity", detail={"identical_share": 0.02})
TASK = TaskResult(
    task="story", task_digest="d", variant="default", dimension="gender", groups={"women": group(), "men": group()},
    without_value=0.04, reliable=True, warnings=[], scores=[WHOLE, attribute("job_title", 0.9, 0.9, 1.0), ALIKE],
)  # fmt: skip
RESULTS = Results(
    format=1, model="m", simulated=False, corpus="c", corpus_synthetic=False, extractor="rules", tau=10,
    permutations=99, seed=0, hearing_check="passed", bad_clips={}, long_clips={}, tasks=[TASK],
)  # fmt: skip
