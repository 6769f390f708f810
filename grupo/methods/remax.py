"""ReMax: the reward of the greedy answer is the baseline. Li et al., 2023, arXiv:2310.10505."""

from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.advantages.kl_in_reward import KLInReward
from grupo.algo.aggregation import sequence_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent, WithGreedy

PAPER = Paper(
    title="ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for Aligning "
    "Large Language Models",
    use="One rollout per prompt is all you can afford to train on, one more all you can sample.",
    verl="adv_estimator='remax' (a KL in the reward is paid from each token on, not by all)",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class LessPart:
    """x - a component of the reward.

    >>> import torch
    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0, 0], parts={"greedy": [0.25, 0.25]})
    >>> LessPart("greedy")(torch.tensor([1.0, 0.0]), batch).tolist()
    [0.75, -0.25]
    """

    part: str

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The component it takes off."""
        return (self.part,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - batch.parts[self.part].to(x)


def remax(group: int = 1, kl: float = 0.0) -> Method:
    """A = r - r(greedy answer to the same prompt), for every token of the answer.

    loss = mean over answers of sum over tokens of -A log pi (algorithm 1). `kl` log(old / ref) of
    the whole answer is taken off its reward first.
    """
    # Algorithm 1 has no KL term; where the paper regularises, the penalty is in the reward.
    baseline = LessPart("greedy")
    return Method(
        sample=WithGreedy(Independent(group)),
        credit=chain(KLInReward(kl), baseline) if kl else baseline,
        loss=Reinforce(),
        weigh=sequence_sum,
    )
