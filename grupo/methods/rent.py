"""RENT: negative entropy is the only reward. Prabhudesai et al., 2025, arXiv:2505.22660."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def rent(group_size: PositiveInt = 5, clip_eps: NonNegative = 0.2) -> Method:
    """A = (r - mean(r)) / std(r), r = -1 / L sum_t H(pi(.|s_t)), the entropy when sampled.

    Args:
        group_size: rollouts per task (authors' code: 5).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors' code: 0.2).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(MeanSignal("entropy", -1.0), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps),
    )


PAPER = Paper(
    title="Maximizing Confidence Alone Improves Reasoning",
    use="No verifier exists, and confident answers are correct more often.",
    tags=("unsupervised", "entropy"),
    checked=("golden", "properties"),
    source=Source(
        "code",
        "satrams/rent-rl, verl/trainer/ppo/ray_trainer.py and verl/trainer/config/exps/",
    ),
    plan=(
        "exps/aime.yaml, the README's run: train batch 30, minibatch 30: one update per step "
        "(gsm8k: 1024 and 256)"
    ),
    missing=(
        "The KL loss of 0.001 of exps/grpo.yaml.",
        "An answer without a result counts as entropy 7 (exps/format.yaml), which the README's run"
        " switches on.",
        "The dual clip of 3 of the release (ppo_trainer.yaml).",
        "Weights of the last tokens of an answer, which the paper finds most informative.",
    ),
    deviations=(
        "Rows count equally, as in GRPO; the released code averages over the tokens of a"
        " micro-batch.",
    ),
    audit=(
        "reward, group size, clip and batch sizes compared with ray_trainer.py and the "
        "configuration files"
    ),
    shown=("docs/claims.md#unlabelled",),
)
