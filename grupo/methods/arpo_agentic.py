"""ARPO for tools: branch where an answer leaves one unsure. Dong et al., 2025, arXiv:2507.19849."""

from torch import Tensor

from grupo.algo.advantages.token_table import placed
from grupo.algo.advantages.turn_table import alike
from grupo.algo.aggregation import token_mean
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, spread
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import BranchWhenUnsure

PAPER = Paper(
    title="Agentic Reinforced Policy Optimization",
    use="Agents whose rollouts differ most in what they make of a tool's answer.",
    checked=("golden", "laws", "run"),
    catalogue=("arpo-agentic",),
)


@piece
class MeanOfSharers:
    """On every action the mean of x over the rollouts that share it: the paper's hard estimate."""

    needs = frozenset({"mark/node"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        group = batch.row_group[:, None].expand_as(batch.mask)
        node = alike(group[batch.mask], batch.seen["mark/node"][batch.mask])
        return placed(group_ops.mean(spread(x, batch)[batch.mask], node), batch)


def arpo_agentic(
    leaves: int = 16, first: int = 8, ways: int = 2, chance: float = 0.5, weight: float = 0.2
) -> Method:
    """A = (r - mean r) / std r over all leaves of `BranchWhenUnsure`: the paper's soft estimate.

    What leaves share has a row in each of them, and learns the mean of their A. Said outright:
    .but(credit=chain(Center(), ScaleByStd(), MeanOfSharers())).
    """
    # Where it branches is the paper's: after a tool's answer, by the entropy of what comes next. In
    # the released code (ARPO of dongguanting) that is the entropy of the turn before the answer,
    # and of a token's ten likeliest words only; here it is of all. The released runs have no KL;
    # how tokens are weighed is our choice.
    return Method(sample=BranchWhenUnsure(leaves, first, ways, chance, weight), weigh=token_mean)
