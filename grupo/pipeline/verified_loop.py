"""The loop of VerIPO: RL, pairs by a verifier of its rollouts, DPO, and RL on fewer solved tasks.

Source: Li et al., 2025, arXiv:2505.19000.
"""

from grupo.pipeline.collect import RowsOfGroup
from grupo.pipeline.pipeline import Pipeline
from grupo.pipeline.sources import CollectedTasks, SurveyedTasks
from grupo.pipeline.stages import CollectStage, Stage, SurveyStage
from grupo.recipe import Recipe
from grupo.tasks import ThinnedAbove

RATE_ATTEMPTS = 4  # rollouts per task behind a pass rate


def verified_loop(
    search: Recipe,
    align: Recipe,
    again: Recipe,
    rows: RowsOfGroup,
    *,
    attempts: int = 8,
    rounds: int = 1,
) -> Pipeline:
    """Stages `search`, `pairs`, `align`, `rates` and `search_again`, each from the one before.

    The verifier reads new rollouts of the policy after `search`. Four fifths of the tasks whose
    four rollouts it solved then are left out of `search_again`, as in the source.

    Args:
        search: RL on all tasks, with an outcome reward; the verifier's checks are reward terms of
            weight 0.
        align: Training on pairs, such as `dpo()`; its tasks are replaced by the pairs.
        again: RL after it, in the source with half the learning rate; its tasks are replaced by
            those of `search` that are left.
        rows: The verifier: returns the pairs of a group, as `VerifiedPairs` does.
        attempts: Rollouts per task that the verifier reads.
        rounds: How often the loop runs.
    """
    unsolved = SurveyedTasks("rates", ThinnedAbove("pass_rate", 1.0, share=0.8))
    return Pipeline(
        (
            Stage("search", search),
            CollectStage("pairs", search, attempts=attempts, rows=rows),
            Stage("align", align.replace(tasks=CollectedTasks("pairs")), start="search"),
            SurveyStage("rates", search, attempts=RATE_ATTEMPTS),
            Stage("search_again", again.replace(tasks=unsolved), start="align"),
        ),
        rounds=rounds,
    )
