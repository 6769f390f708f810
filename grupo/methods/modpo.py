"""MODPO: DPO with a margin of other objectives. Zhou et al., 2023, arXiv:2310.03708."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import Logistic, LogRatio, Preference, RewardMargin
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveFloat
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs
from grupo.util.errors import ConfigError


def modpo(margin_weights: tuple[tuple[str, float], ...] = (), beta: PositiveFloat = 0.1) -> Method:
    """loss = mean over pairs of -log sigmoid(z), z = (beta (h(w) - h(l)) - m(w) + m(l)) / w_k.

    h = log(pi / pi_ref), w the chosen and l the rejected answer, m = sum_j w_j r_j over reward
    terms r_j, w_k = 1 - sum_j w_j. Without a margin it is DPO. The environment scores the answers.

    Args:
        margin_weights: name of each reward term of the margin with its weight w_j.
        beta: inverse temperature.
    """
    weights = [weight for _, weight in margin_weights]
    if min(weights, default=0) < 0 or sum(weights) >= 1:
        raise ConfigError(
            f"modpo: margin_weights: {margin_weights}. Allowed: weights of 0 or more, of a sum"
            " below 1."
        )
    own_weight = 1 - sum(weights)
    margin = RewardMargin(tuple((name, weight / beta) for name, weight in margin_weights))
    loss = Preference(LogRatio(), Logistic(beta / own_weight), margin=margin)
    sampler = PreferencePairs(reward_terms=tuple(name for name, _ in margin_weights))
    return Method(sampler=sampler, advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title=(
        "Beyond One-Preference-Fits-All Alignment: Multi-Objective Direct Preference Optimization"
    ),
    use="Pairs order one objective, and others have rewards.",
    tags=("preferences", "reward"),
    checked=("golden", "properties", "run"),
    example='modpo(margin_weights=(("margin", 0.5),))',
    catalogue=("modpo",),
    source=Source(
        "code",
        "ZHZisZZ/modpo: modpo_loss in src/trainer/modpo_trainer.py, scripts/modpo/*/modpo.py",
    ),
    plan=(
        "a pass over the pairs, one update per batch; prompts_per_step is the batch. The scripts "
        "make 3 passes, in batches of 8 pairs a device"
    ),
    missing=(
        "Margins from the log-ratios of another DPO policy, as in scripts/modpo/beavertails: here"
        " reward terms.",
        "The front over weights: train one policy for each.",
        "The hinge loss, which the release offers beside the sigmoid.",
    ),
    deviations=(
        "A task with several chosen or rejected answers is one pair, of their mean scores; the "
        "release has a row for each pair.",
        "All weights have the sum 1, as in scripts/modpo/beavertails (0.1, 0.5 and 0.9 for the"
        " pairs' own objective). The script for summaries has 1 for the pairs and 0.1 for length.",
    ),
    audit="loss, weights and beta 0.1 compared with modpo_loss and the defaults of both scripts",
    shown=("docs/comparisons/preferences.md#modpo-the-front-of-two-objectives",),
)
