"""Which checkpoints of a run are kept."""

from grupo.core.component import component
from grupo.core.ranges import NonNegativeInt, PositiveInt


@component
class KeepCheckpoints:
    """Which checkpoints a run keeps; older ones are removed after each save.

    Args:
        last: Number of newest checkpoints.
        best: Number of further checkpoints that scored best in an evaluation during training. A
            step whose evaluation is among the best is saved, whatever `save_every` is.
        metric: Evaluation metric that ranks them: `eval/sampled`, `eval/greedy` or `eval/pass@8`;
            `eval/nll` (lower is better) or `eval/token_accuracy` of demonstrations.
    """

    last: PositiveInt = 2
    best: NonNegativeInt = 0
    metric: str = "eval/sampled"
