"""LUSPO: GSPO with answers weighted by length. Liu et al., 2026, arXiv:2602.05261."""

from grupo.algo import ratios
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def luspo(
    group_size: PositiveInt = 8, clip_low: NonNegative = 2e-3, clip_high: NonNegative = 2.5e-3
) -> Method:
    """loss = mean over answers of -L min(s A, clip(s, 1 - clip_low, 1 + clip_high) A), L the
    length.

    s is the geometric mean of the token ratios, A = (r - mean(r)) / std(r): GSPO's loss times L.

    A step has 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task.
        clip_low: s is clipped below at 1 - clip_low (paper: 0.002).
        clip_high: s is clipped above at 1 + clip_high (paper: 0.0025).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_low, clip_high, ratios.sequence),
        aggregation=token_sum,
        updates=Updates(minibatches=4),
    )


PAPER = Paper(
    title="Length-Unbiased Sequence Policy Optimization: Revealing and Controlling Response Length "
    "Variation in RLVR",
    use="Under GSPO answers collapse to short ones.",
    tags=("aggregation", "length", "importance-sampling"),
    equals_grpo_when="there is one update per step",
    trl="loss_type='luspo', importance_sampling_level='sequence', epsilon=2e-3, "
    "epsilon_high=2.5e-3",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "TRL's index of papers, with the clips of the paper's section 5.1",
    ),
    plan=(
        "not stated in any source that was opened; GSPO's four minibatches, since clips of "
        "0.002 act from the second update on"
    ),
    deviations=("group_size 8 is our choice.",),
    audit=(
        "clips and the factor of length compared with TRL's index of papers; the authors' "
        "code (murphy4122/LUSPO, a core_algos.py and a train.sh for verl) could not be opened"
    ),
    shown=("docs/claims.md#padded_updates",),
)
