"""Arms that are no methods: an upper bound that knows the answers, and a policy left as it is."""

from collections.abc import Mapping

from torch import Tensor

from grupo.algo.advantages.kl_in_reward import zero_advantage
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.requires import Requires
from grupo.method import Method

PREFERRED = "step/preferred"  # 1 for actions of an optimal policy, -1 for others


@component
class PreferredItems:
    """The advantage of an action is 1 if an optimal policy takes it, else -1."""

    requires = Requires(signals=(PREFERRED,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return batch.signals[PREFERRED]


REFERENCE_ARMS: Mapping[str, Method] = {
    "oracle": Method(advantage=PreferredItems(), loss=Reinforce(), aggregation=token_mean),
    "untrained": Method(advantage=zero_advantage),
}
