"""ExPO: the policy imitates own explanations of the answer. Zhou et al., 2025, arXiv:2507.02834."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import sequence_mean
from grupo.algo.data_source import PerSourceMean, SeparateDemos
from grupo.algo.losses import NLL, Clip, SelectBySource
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import (
    Explanations,
    GroupSampler,
    RecitedExplanation,
    Rescue,
    RescueAttempt,
)
from grupo.rollouts.samplers.rescue import every_group


def expo_self_explanation(
    group_size: PositiveInt = 8,
    num_explanations: PositiveInt = 1,
    beta: NonNegative = 0.1,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """GRPO + beta x the mean of -log pi(explanation, answer | task).

    The policy explains the reference answer, which stands in its prompt; its explanation and the
    answer are then imitated behind the plain prompt. Each explanation counts the same, whatever its
    length. A = (r - mean(r)) / std(r) is over the group_size plain rollouts, whose loss is
    -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A); beta falls linearly to 0 over the run.

    Args:
        group_size: plain rollouts per task (our choice).
        num_explanations: explanations per task (our choice).
        beta: weight of the imitation at the beginning (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    attempt = RescueAttempt(
        Explanations(num_explanations), training_prompt=RecitedExplanation(), source="explanation"
    )
    return Method(
        sampler=Rescue(GroupSampler(group_size), (attempt,), every_group),
        advantage=SeparateDemos(chain(Center(), ScaleByStd())),
        loss=SelectBySource(Clip(clip_eps, clip_eps), Linear(beta, 0.0) * NLL()),
        aggregation=PerSourceMean(sequence_mean),
    )


PAPER = Paper(
    title="ExPO: Unlocking Hard Reasoning with Self-Explanation-Guided Reinforcement Learning",
    use="Many tasks are never solved, and only their answers are known.",
    tags=("hints", "sft"),
    checked=("golden", "properties", "run"),
    catalogue=("expo-self-explanation",),
    source=Source("third_party", "a public note on the paper, as the catalogue's row quotes it"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "ExP-DPO, pairs of an explanation and an own answer.",
        "The term in groups without a success alone: Rescue(..., when=AllIncorrect()).",
    ),
    deviations=(
        "The weight beta, its linear decay to 0 and the prompt are our choice.",
        "So are the clip of 0.2, the mean over answers and no KL divergence.",
    ),
    audit="added term and its decay compared with the note that the catalogue's row quotes",
    shown=(
        "docs/guidance_shown/worded_help.md#results",
        "tests/methods/test_expo_self_explanation.py"
        "::test_group_of_failures_has_exactly_beta_times_the_gradient_of_imitation",
    ),
)
