"""AMFT: imitate more while entropy is low. He et al., 2025, arXiv:2508.06944."""

from collections.abc import Sequence

from grupo.algo.advantages import Whiten
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Apart, Blend, Clip, EachSource, EntropyBonus, Likelihood
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.core.schedules import varying
from grupo.method import Method
from grupo.rollouts.samplers import Independent, WithExpert

PAPER = Paper(
    title="AMFT: Aligning LLM Reasoners by Meta-Learning the Optimal Imitation-Exploration Balance",
    use="Mix demonstrations and rewards in one stage, the mixture steered by entropy.",
    checked=("golden", "laws", "run"),
    example="amft(entropy=0.5)",
    catalogue=("amft",),
)


@piece
class Steered:
    """mu <- clip(mu + `by` (`target` - metric), `low`, `high`) after a step, `start` at first."""

    start: float
    target: float
    by: float
    low: float = 0.05
    high: float = 0.95
    reads: str = "entropy"

    def follow(self, measured: Sequence[float]) -> float:
        mu = self.start
        for value in measured:
            mu = min(self.high, max(self.low, mu + self.by * (self.target - value)))
        return mu


def amft(
    entropy: float, group: int = 8, share: float = 0.8, by: float = 5e-4, clip: float = 0.2
) -> Method:
    """(1 - mu) RL + mu SFT, mu <- clip(mu + `by` (`entropy` - H), 0.05, 0.95), from `share` on.

    RL is PPO's clip with advantages whitened over the batch and an entropy bonus of 0.01, SFT the
    likelihood of demonstrations, each a mean over its own tokens. H is the policy's mean entropy
    over what is learned from, `entropy` what it was after a first stage of SFT.
    """
    # The numbers are those of the released configuration (TSYJ-He/AMFT), without its critic: a
    # whitened reward is the advantage; the bonus is of own actions. The paper adds to mu, every 20
    # steps, a meta-gradient: the gain on held-out data of SFT's gradient over RL's. It needs three
    # gradients of one step kept apart, as nothing here does; the released code has its sign wrong.
    mu, own = Steered(share, entropy, by), Clip(clip, clip) + EntropyBonus(0.01)
    return Method(
        sample=WithExpert(Independent(group)),
        credit=Apart(Whiten()),
        loss=Blend(varying(mu), own, Likelihood()),
        weigh=EachSource(token_mean),
    )
