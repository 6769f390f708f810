"""The loop of VerIPO: RL, DPO on pairs of a verifier, and RL without most of the solved tasks.

Source: Li et al., 2025, arXiv:2505.19000.
"""

from grupo.pipeline.pipeline import Pipeline
from grupo.pipeline.rows import RowsOfGroup
from grupo.pipeline.sources import CollectedTasks, SurveyedTasks
from grupo.pipeline.stages import CollectStage, Stage, SurveyStage
from grupo.recipe import Recipe
from grupo.tasks import ThinnedAbove

RATE_ATTEMPTS = 4  # rollouts per task from which the stage `rates` computes a pass rate


def verified_loop(
    search: Recipe,
    align: Recipe,
    again: Recipe,
    rows: RowsOfGroup,
    *,
    attempts: int = 8,
    rounds: int = 1,
) -> Pipeline:
    """A pipeline with the stages `search`, `pairs`, `align`, `rates` and `search_again`.

    The stage `pairs` samples new rollouts of the policy after `search`, and the verifier makes
    pairs of them. The stage `rates` samples four rollouts of each task. The stage `search_again`
    leaves out four fifths of the tasks that all four rollouts solve, as in the source.

    Args:
        search: RL on all tasks. Its reward has the verifier's checks as terms of weight 0, so that
            they are recorded and not rewarded.
        align: Training on pairs, such as with `dpo()`. The pairs replace its tasks.
        again: RL after `align`. Its tasks are replaced by the remaining tasks of `search`. The
            source halves the learning rate.
        rows: The verifier: returns the pairs of a group, as `VerifiedPairs` does.
        attempts: Number of sampled rollouts per task that the verifier reads.
        rounds: Number of times that the loop runs.
    """
    remaining_tasks = SurveyedTasks("rates", ThinnedAbove("pass_rate", 1.0, share=0.8))
    return Pipeline(
        (
            Stage("search", search),
            CollectStage("pairs", search, attempts=attempts, rows=rows),
            Stage("align", align.replace(tasks=CollectedTasks("pairs")), start="search"),
            SurveyStage("rates", search, attempts=RATE_ATTEMPTS),
            Stage("search_again", again.replace(tasks=remaining_tasks), start="align"),
        ),
        rounds=rounds,
    )
