"""ARPO for tools: branch where an answer leaves one unsure. Dong et al., 2025, arXiv:2507.19849."""

from torch import Tensor

from grupo.algo.advantages.token_table import scatter_tokens
from grupo.algo.advantages.turn_table import combine_labels
from grupo.algo.aggregation import token_mean
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import EntropyBranching

PAPER = Paper(
    title="Agentic Reinforced Policy Optimization",
    use="Agents whose rollouts differ most in what they make of a tool's answer.",
    checked=("golden", "laws", "run"),
    catalogue=("arpo-agentic",),
)


@component
class SharedNodeMean:
    """On every action the mean of x over the rollouts that share it: the paper's hard estimate."""

    required_signals = frozenset({"step/node"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        group = batch.row_group[:, None].expand_as(batch.mask)
        node = combine_labels(group[batch.mask], batch.signals["step/node"][batch.mask])
        return scatter_tokens(
            group_ops.mean(broadcast_to_tokens(x, batch)[batch.mask], node), batch
        )


def arpo_agentic(
    group_size: int = 16,
    initial_rollouts: int = 8,
    branches: int = 2,
    branch_prob: float = 0.5,
    entropy_weight: float = 0.2,
) -> Method:
    """A = (r - mean r) / std r over all leaves of `EntropyBranching`: the paper's soft estimate.

    What leaves share has a row in each of them, and learns the mean of their A. Said outright:
    .replace(advantage=chain(Center(), ScaleByStd(), MeanOfSharers())).
    """
    # Where it branches is the paper's: after a tool's answer, by the entropy of what comes next. In
    # the released code (ARPO of dongguanting) that is the entropy of the turn before the answer,
    # and of a token's ten likeliest words only; here it is of all. The released runs have no KL;
    # how tokens are weighed is our choice.
    return Method(
        sampler=EntropyBranching(
            group_size, initial_rollouts, branches, branch_prob, entropy_weight
        ),
        aggregation=token_mean,
    )
