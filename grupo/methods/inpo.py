"""INPO: no-regret self-play by regression on pairs. Zhang et al., 2024, arXiv:2407.00617."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import MixedLogRatio, Preference, SquaredError
from grupo.algo.minibatches import Updates
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveFloat
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def inpo(
    group_size: PositiveInt = 8,
    eta: PositiveFloat = 0.005,
    ref_weight: Fraction = 1 / 3,
    epochs: PositiveInt = 2,
) -> Method:
    """loss = mean over groups of (s(best) - s(worst) - 1 / (2 eta))^2.

    s = log pi - a log pi_ref - (1 - a) log pi_old of a whole answer, a = tau / eta. pi_old is the
    policy that sampled: a step is a round. The reward orders the answers; where they can only be
    compared it is a win rate. With a = 1 it is IPO on the policy's own answers.

    Args:
        group_size: rollouts per task (run script: 8).
        eta: inverse step size of the mirror descent (run script: 0.005; the trainer's
            default: 0.0075).
        ref_weight: a, the strength of the KL divergence from the reference policy over eta (run
            script: 1/3).
        epochs: updates on the answers of a step (the code: 2).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=Preference(MixedLogRatio(ref_weight), SquaredError(1 / (2 * eta))),
        aggregation=group_mean,
        updates=Updates(epochs),
    )


PAPER = Paper(
    title=(
        "Iterative Nash Policy Optimization: Aligning LLMs with General Preferences via No-Regret "
        "Learning"
    ),
    use="Preferences may be cyclic, and the policy should stay near its reference.",
    tags=("preferences", "self-play", "kl"),
    checked=("golden", "properties", "run"),
    catalogue=("inpo",),
    source=Source(
        "third_party",
        "a copy of the authors' code, XuHuang441/Multi-player-Nash-Policy-Optimization, "
        "inpo_original: inpo/trainer.py and run_inpo_fixed.sh",
    ),
    plan="a step is a round of the paper, which trains on the pairs of 20,000 prompts in "
    "minibatches, for 2 epochs (num_train_epochs of inpo_train.py, which the run script leaves); "
    "here an epoch is one update",
    missing=("The tournament that finds the best and the worst of 8 answers: here the reward.",),
    deviations=(
        "A group of equal rewards has loss 0 and counts in the mean over groups.",
        ("At the first update of a step pi is pi_old, so that s is a log(pi / pi_ref) there."),
    ),
    audit="loss compared with inpo_loss of the copy, constants with the run script; another "
    "implementation (ntlfi/ENPO, workers/train_inpo.py) has the same loss and quotes eta = 0.0075 "
    "and ref_weight = 1/3 for the paper, whose text was not opened",
    shown=(
        "tests/methods/test_preference_games.py::test_mean_iterate_of_inpo_is_near_the_nash_policy",
    ),
)
