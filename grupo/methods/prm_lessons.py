"""PRM lessons: step labels on which two sources agree. Zhang et al., 2025, arXiv:2501.07301."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import StepCrossEntropy
from grupo.core.aux_heads import DeepHead, FeatureHead
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import LabelledSteps


def prm_lessons(
    head: FeatureHead = DeepHead("process"), separator: str = "\n", judged: str = ""
) -> Method:
    """loss = mean over answers of sum over steps of -v log sigmoid(q) - (1 - v) log sigmoid(-q).

    q is the head behind a step, v its label; steps behind the first wrong one are left out. An
    answer is left out if its labels and a judge name different first wrong steps.

    Args:
        head: the head, whose output is a logit.
        separator: text between two steps.
        judged: column with the first wrong step of a judge, from 1, or 0 for none; "" without one.
    """
    return Method(
        sampler=LabelledSteps(separator=separator, judged=judged),
        advantage=identity,
        loss=StepCrossEntropy(head),
        aggregation=token_sum,
    )


PAPER = Paper(
    title="The Lessons of Developing Process Reward Models in Mathematical Reasoning",
    use="Steps of answers have labels, of which some are wrong, and a judge has read them, too.",
    tags=("process-reward", "reward", "filtering"),
    trl="PRMTrainer, of all steps and without a judge",
    checked=("golden", "properties", "run"),
    catalogue=("prm-lessons",),
    source=Source(
        "third_party",
        "the abstract, and a public review of the paper (summary-of-some-paper-in-cuda)",
    ),
    plan="a pass over the answers, one update per batch (our choice)",
    missing=(
        "The labels: 8 completions of each step, and a judge of 72 billion parameters. Both are"
        " columns of the rows here; PrefixValue and Judge measure such values.",
        "A trained language model: no run compares the F1 with and without the judge.",
        "A model of 7 billion parameters, and ProcessBench.",
    ),
    deviations=(
        "One logit in place of two classes, which is the same cross-entropy.",
        "The sum over the steps of an answer; the paper's mean over the steps of a batch is not"
        " stated in any source that was opened.",
    ),
    audit="the filter and the F1 compared with the catalogue's numbers",
)
