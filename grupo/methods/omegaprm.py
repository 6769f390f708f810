"""OmegaPRM: binary search for the first wrong step. Luo et al., 2024, arXiv:2406.06592."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import StepCrossEntropy
from grupo.core.aux_heads import FeatureHead, OwnModelHead
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveInt
from grupo.method import Method
from grupo.rollouts.samplers import AfterText, FirstErrorSearch, GroupSampler
from grupo.rollouts.samplers.cut_points import CutPoints


def omegaprm(
    head: FeatureHead = OwnModelHead("process"),
    group_size: PositiveInt = 8,
    completions: PositiveInt = 8,
    searches: PositiveInt = 8,
    at: CutPoints = AfterText(),
) -> Method:
    """loss = mean over rollouts of sum over measured steps of softplus(q) - v q.

    q is the head behind a step, v the share of completions of the step that are right. Steps of
    wrong rollouts are measured by a binary search for the first one that no completion repairs
    (`FirstErrorSearch`). An `OwnModelHead` leaves the policy as it is.

    Args:
        head: the head, whose output is a logit.
        group_size: rollouts of a task before the searches (our choice).
        completions: continuations of each measured step (paper: 8).
        searches: largest number of searches of a task (paper: 100; our choice: 8).
        at: ends of steps.
    """
    return Method(
        sampler=FirstErrorSearch(GroupSampler(group_size), at, completions, searches),
        advantage=identity,
        loss=StepCrossEntropy(head),
        aggregation=token_sum,
    )


PAPER = Paper(
    title="Improve Mathematical Reasoning in Language Models by Automated Process Supervision",
    use="Final answers can be checked, and the steps that lead to them have no labels.",
    tags=("process-reward", "reward", "tree"),
    checked=("golden", "properties", "run"),
    catalogue=("omegaprm",),
    source=Source("third_party", "openreasoner/openr, data/omegaPRM_v2/omegaprm.py; the abstract"),
    plan="a search of each task, one update per batch (our choice; paper: labels first, then"
    " training on all of them)",
    missing=(
        "A trained language model: no run shows the F1 of first wrong steps, or a better vote.",
        "The weighted vote of the paper as a table; `BestOf(n, HeadVote(...))` and"
        " `BestOf(n, ByHead('process'))` choose by a head.",
        "The filter of questions that are too easy or too hard for 32 rollouts.",
    ),
    deviations=(
        "Steps end at a text; the paper cuts the text between two states in halves of tokens.",
        "The length of a rollout counts from its state on, in items.",
    ),
    audit="priority, search and candidates compared with OmegaPRM.run of openreasoner/openr",
)
