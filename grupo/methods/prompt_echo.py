"""PromptEcho: a good image lets its prompt be read off. Liu et al., 2026, arXiv:2604.12652."""

from collections.abc import Callable, Sequence

from grupo.algo.advantages import Center, ScaleByStd, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.types import Rollout, Task
from grupo.method import Method
from grupo.rewards import PerRolloutReward
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="PromptEcho: Annotation-Free Reward from Vision-Language Models for Text-to-Image"
    " Reinforcement Learning",
    use="Images are to follow their prompts, and there is a vision model but no reward model.",
    checked=("golden", "laws", "run"),
    catalogue=("prompt-echo",),
)


def mean_prompt_logp(logp: Sequence[float]) -> float:
    """r = 1 / T sum_t log p(c_t | image, question, c_<t), over the tokens of the prompt alone."""
    return sum(logp) / len(logp)


@component
class PromptLikelihood(PerRolloutReward):
    """A reward: `mean_prompt_logp` of what a frozen model gives to each token of the prompt, `logp(task, i)`.

    The prompt is the answer to a fixed question such as "describe this image": one forward pass.
    """

    logp_fn: Callable[[Task, Rollout], Sequence[float]]

    def score(self, task: Task, rollout: Rollout) -> float:
        return mean_prompt_logp(self.logp_fn(task, rollout))


def prompt_echo(group_size: int = 8, clip_eps: float = 0.2) -> Method:
    """A = (r - mean(r)) / std(r) with r = reward_terms["echo"], minus the cross-entropy of the prompt."""
    # Mean or sum over the prompt is all one inside a group, up to eps. The cross-entropy is the
    # paper's; group and clip are our choice, and steps of denoising are the actions.
    credit = chain(UseRewardTerm("echo"), Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=credit, loss=Clip(clip_eps, clip_eps))
