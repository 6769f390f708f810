"""ARPO for tools: branch where a tool raises entropy. Dong et al., 2025, arXiv:2507.19849."""

from torch import Tensor

from grupo.algo.advantages.token_table import scatter_tokens
from grupo.algo.advantages.turn_table import combine_labels
from grupo.algo.aggregation import token_mean
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import EntropyBranching


def arpo_agentic(
    group_size: PositiveInt = 16,
    initial_rollouts: PositiveInt = 8,
    branches: PositiveInt = 2,
    branch_prob: NonNegative = 0.5,
    entropy_weight: NonNegative = 0.2,
) -> Method:
    """A = (r - mean r) / std r over all leaves of `EntropyBranching`: the paper's soft estimate.

    Tokens that leaves share are in one row of each of them, so their gradient is that of the mean
    of A. The hard estimate states it explicitly:
    .replace(advantage=chain(Center(), ScaleByStd(), SharedNodeMean())).

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: leaves per task.
        initial_rollouts: rollouts that start at the prompt.
        branches: branches at a branching point.
        branch_prob: base probability of branching after a tool's result.
        entropy_weight: increase of that probability with the rise in entropy.
    """
    return Method(
        sampler=EntropyBranching(
            group_size, initial_rollouts, branches, branch_prob, entropy_weight
        ),
        aggregation=token_mean,
        updates=Updates(minibatches=8),
    )


@component
class SharedNodeMean:
    """Mean of x over the rollouts that share an action, (N, T): the paper's hard estimate."""

    requires = Requires(signals=("step/node",))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        group = batch.row_group[:, None].expand_as(batch.mask)
        node = combine_labels(group[batch.mask], batch.signals["step/node"][batch.mask])
        per_action = broadcast_to_tokens(x, batch)[batch.mask]
        return scatter_tokens(group_ops.mean(per_action, node), batch)


PAPER = Paper(
    title="Agentic Reinforced Policy Optimization",
    use="The rollouts of agents differ most in their reaction to a tool's result.",
    tags=("agents", "tree", "entropy"),
    checked=("golden", "properties", "run"),
    catalogue=("arpo-agentic",),
    source=Source(
        "code",
        "dongguanting/ARPO, ARPO/scripts/ARPO_7B_Reasoning_1node.sh and vllm_rollout_with_tools.py",
    ),
    plan="ARPO_7B_Reasoning_1node.sh: train batch 128, minibatch 16 prompts: 8 updates per step",
    missing=(
        (
            "The reward of the release: -1 for a wrong format, else token F1, and +0.1 where F1 is "
            "above 0 and both tools were used."
        ),
        "The dual clip of 3 of the release.",
        "The limit of 3 tool calls, at which the release ends an answer with a trained end token.",
    ),
    deviations=(
        (
            "A branching point is judged by the entropy of the tokens after a tool's result, as in "
            "the paper; the release takes that of the turn before."
        ),
        (
            "The entropy is that of the vocabulary, in the release the sum over the ten likeliest "
            "tokens and the generated one."
        ),
        (
            "The rise is against the first turn of the same rollout, which a branch shares with "
            "the rollout that it left. The release never clears initial_entropy_dict, so that the "
            "rise is against the first batch's entropy at the same index. A new index, such as "
            "that of a branch in the first batch, has its own first segment as baseline."
        ),
        "The mean is over the tokens of a minibatch, in the release of a micro-batch.",
    ),
    audit=(
        "group, initial rollouts, branches, probabilities and batch sizes compared with the run "
        "script, branching and the reward with vllm_rollout_with_tools.py and deep_research.py"
    ),
)
