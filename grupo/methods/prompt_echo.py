"""PromptEcho: the prompt's likelihood given the image. Liu et al., 2026, arXiv:2604.12652."""

from collections.abc import Callable, Sequence

from grupo.algo.advantages import Center, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.types import Rollout, Task
from grupo.method import Method
from grupo.rewards import PerRolloutReward
from grupo.rollouts.samplers import GroupSampler


def prompt_echo(group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2) -> Method:
    """A = r - mean(r) with r = minus the cross-entropy of the prompt given the image.

    Reward terms: "echo", r. Actions are denoising steps.

    Args:
        group_size: rollouts per task (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(UseRewardTerm("echo"), Center()),
        loss=Clip(clip_eps, clip_eps),
    )


def mean_prompt_logp(logp: Sequence[float]) -> float:
    """r = 1 / T sum_t log p(c_t | image, question, c_<t), over the tokens of the prompt alone."""
    return sum(logp) / len(logp)


@component
class PromptLikelihood(PerRolloutReward):
    """Reward: `mean_prompt_logp` of the prompt's tokens under a frozen vision model.

    The prompt is scored as the answer to a fixed question such as "describe this image", in one
    forward pass.

    Args:
        logp_fn: (task, rollout) -> log-probability of each token of the prompt.
    """

    logp_fn: Callable[[Task, Rollout], Sequence[float]]

    def score(self, task: Task, rollout: Rollout) -> float:
        return mean_prompt_logp(self.logp_fn(task, rollout))


PAPER = Paper(
    title="PromptEcho: Annotation-Free Reward from Vision-Language Models for Text-to-Image"
    " Reinforcement Learning",
    use="Images should follow their prompts; a vision model exists but no reward model.",
    tags=("diffusion", "multimodal", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("prompt-echo",),
    source=Source(
        "third_party",
        "the authors' README (roooobotx/prompt_echo: r and A); an explainer article has the sum"
        " over tokens; training code is not released",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=("The settings of the flow models and samplers of the paper's runs.", "AWM's loss."),
    deviations=(
        "r is the mean over the prompt's tokens, as a cross-entropy usually is; with the sum, A is"
        " as many times as large as the prompt has tokens.",
    ),
    audit="r and A compared with the authors' README",
)
