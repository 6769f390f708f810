"""GroCo: sorts likelihoods by a soft network. Shvetsova et al., 2023, arXiv:2301.02009."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import SortingNetwork
from grupo.core.numbers import Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def groco(group_size: PositiveInt = 8, steepness: Positive = 1.0) -> Method:
    """loss = mean over answers of -log P(the answer is sorted to a place of its reward).

    The network sorts log pi(y) / |y| with soft comparators, 1/2 + atan(steepness d) / pi of a
    difference d.

    Args:
        group_size: rollouts per task (our choice).
        steepness: inverse width of a comparator, per nat (authors' configs: 1, per unit of cosine).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=SortingNetwork(steepness=steepness),
        aggregation=group_mean,
    )


PAPER = Paper(
    title="Learning by Sorting: Self-supervised Learning with Group Ordering Constraints",
    use="All answers of a group have an order, and a loss on its pairs ignores most of it.",
    tags=("preferences",),
    checked=("golden", "properties", "run"),
    catalogue=("groco",),
    source=Source(
        "code",
        "ninatu/learning_by_sorting: learning_by_sorting/losses/groco.py and "
        "configs/2views_100ep.yaml; the definition of a differentiable sorting network from memory",
    ),
    plan="the release makes one update for each batch of images; here one update per step",
    missing=(
        "The selection of the ten nearest negatives (topk_neg).",
        "The stopped gradient: in the release it reaches the anchor's embedding alone (stop_grad).",
    ),
    deviations=(
        "The paper sorts distances of images; here mean log-likelihoods of answers are sorted.",
        "Places are those of equal rewards, of which the paper has two: positives and negatives.",
        "group_size is our choice, 8.",
    ),
    audit="loss, order of the inputs and steepness compared with groco.py and the config; network "
    "compared with its definition: doubly stochastic, and a permutation in the limit",
    shown=("docs/comparisons/preferences.md#groco-a-list-at-once-or-its-pairs",),
)
