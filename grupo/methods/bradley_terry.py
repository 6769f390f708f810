"""Bradley-Terry: a score that explains preferences. Ouyang et al., 2022, arXiv:2203.02155."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import HeadAtEnd, Logistic, Preference
from grupo.algo.losses.pairs import all_ordered_pairs
from grupo.core.aux_heads import DeepHead, FeatureHead
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def bradley_terry(head: FeatureHead = DeepHead("score")) -> Method:
    """loss = mean over pairs of -log sigmoid(s(chosen) - s(rejected)), s a head of the policy.

    All pairs of a chosen and a rejected answer to a prompt count, and the mean over the prompts.
    The gradient of a `DeepHead` trains the policy's network, which becomes the reward model.
    `grupo export` writes it with its head, and `LearnedReward` reads it.

    Args:
        head: the head that scores an answer.
    """
    loss = Preference(HeadAtEnd(head), Logistic(beta=1.0), all_ordered_pairs)
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="Training language models to follow instructions with human feedback",
    use="There are pairs of a better and a worse answer, and later runs need a reward.",
    tags=("preferences", "reward"),
    trl="RewardTrainer",
    checked=("golden", "properties", "run"),
    source=Source("paper", "eq. 1"),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch (paper: one "
    "epoch in batches of 64 prompts)",
    missing=(
        "The bias that shifts the scores after training, so that demonstrations have a mean score"
        " of 0.",
        "The start from the SFT model with its unembedding replaced by a scalar output: here the"
        " recipe's policy keeps its unembedding and gains a head.",
    ),
    deviations=(
        "The score is read in the state before the last token, the end token, not after it.",
    ),
    audit="loss compared with eq. 1 of the paper",
)
