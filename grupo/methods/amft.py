"""AMFT: imitate more while entropy is low. He et al., 2025, arXiv:2508.06944."""

from collections.abc import Sequence

from grupo.algo.advantages import Whiten
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL, Clip, EntropyBonus, MixSFT, PerSourceMean, SeparateDemos
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.schedules import as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution

PAPER = Paper(
    title="AMFT: Aligning LLM Reasoners by Meta-Learning the Optimal Imitation-Exploration Balance",
    use="Mix demonstrations and rewards in one stage, the mixture steered by entropy.",
    checked=("golden", "laws", "run"),
    example="amft(target_entropy=0.5)",
    catalogue=("amft",),
)


@component
class IntegralController:
    """mu <- clip(mu + `gain` (`target` - metric), `min_value`, `max_value`) after a step, `start` at first."""

    start: float
    target: float
    gain: float
    min_value: float = 0.05
    max_value: float = 0.95
    metric: str = "policy/entropy"

    def next_value(self, metric_values: Sequence[float]) -> float:
        mu = self.start
        for value in metric_values:
            mu = min(self.max_value, max(self.min_value, mu + self.gain * (self.target - value)))
        return mu


def amft(
    target_entropy: float,
    group_size: int = 8,
    initial_sft_weight: float = 0.8,
    gain: float = 5e-4,
    clip_eps: float = 0.2,
) -> Method:
    """(1 - mu) RL + mu SFT, mu <- clip(mu + `gain` (`target_entropy` - H), 0.05, 0.95), from `initial_sft_weight` on.

    RL is PPO's clip with advantages whitened over the batch and an entropy bonus of 0.01, SFT the
    likelihood of demonstrations, each a mean over its own tokens. H is the policy's mean entropy
    over what is learned from, `target_entropy` what it was after a first stage of SFT.
    """
    # The numbers are those of the released configuration (TSYJ-He/AMFT), without its critic: a
    # whitened reward is the advantage; the bonus is of own actions. The paper adds to mu, every 20
    # steps, a meta-gradient: the gain on held-out data of SFT's gradient over RL's. It needs three
    # gradients of one step kept apart, as nothing here does; the released code has its sign wrong.
    mu, own = (
        IntegralController(initial_sft_weight, target_entropy, gain),
        Clip(clip_eps, clip_eps) + EntropyBonus(0.01),
    )
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(Whiten()),
        loss=MixSFT(as_float(mu), own, NLL()),
        aggregation=PerSourceMean(token_mean),
    )
