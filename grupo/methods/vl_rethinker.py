"""VL-Rethinker: replay and forced rethinking. Wang et al., 2025, arXiv:2504.08837."""

from torch import Tensor

from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL, Clip, WhereLoss
from grupo.algo.minibatches import Updates
from grupo.algo.replay_rules import FillFromBuffer
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NonNegativeInt, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import ForcedRethinking, GroupSampler


def vl_rethinker(
    group_size: PositiveInt = 8,
    capacity: PositiveInt = 2048,
    alpha: NonNegative = 1.0,
    sft_coef: NonNegative = 0.05,
    min_tokens: NonNegativeInt = 31,
) -> Method:
    """GRPO with replay of rollouts that have an advantage, and rollouts that are forced to rethink.

    Finished rollouts go on behind a trigger such as "Wait", and replace their origin if they are
    correct. A = r - mean(r). Rollouts without an advantage give their places to earlier ones,
    drawn by |A|^alpha / sum |A|^alpha. loss = -min(w A, clip(w, 0.8, 1.35) A), w the ratio to the
    policy that generated, - sft_coef log pi where a rollout rethinks and A > 0.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 8).
        capacity: rollouts in the replay buffer (authors' code: half of a step's rollouts).
        alpha: power of the advantage in the draw (paper: 1).
        sft_coef: weight of the likelihood of correct rethinking (authors' script: 0.05).
        min_tokens: fewest tokens behind the trigger (authors' code: 31).
    """
    return Method(
        sampler=ForcedRethinking(GroupSampler(group_size), min_tokens=min_tokens),
        advantage=Center(),
        loss=Clip(0.2, 0.35) + sft_coef * WhereLoss(NLL(), RethoughtSuccesses()),
        aggregation=token_mean,
        updates=Updates(minibatches=8),
        replay=FillFromBuffer(capacity, alpha),
    )


@component
class RethoughtSuccesses:
    """Mask of rollouts that rethink and have a positive advantage, (N, T).

    >>> from grupo.testing.batches import make_batch
    >>> terms = {"rethought": [1.0, 1.0, 0.0]}
    >>> batch = make_batch([0, 0, 0], advantage=[1.0, -1.0, 1.0], reward_terms=terms)
    >>> RethoughtSuccesses()(batch).tolist()
    [[True], [False], [False]]
    """

    requires = Requires(reward_terms=("rethought",))

    def __call__(self, batch: Batch) -> Tensor:
        rethought = batch.reward_terms["rethought"][batch.rollout, None] > 0
        return rethought & (batch.advantage > 0)


PAPER = Paper(
    title=(
        "VL-Rethinker: Incentivizing Self-Reflection of Vision-Language Models with Reinforcement "
        "Learning"
    ),
    use="Most groups have equal rewards, and answers are given without a second thought.",
    tags=("off-policy", "multimodal"),
    checked=("golden", "properties", "run"),
    catalogue=("vl-rethinker",),
    source=Source(
        "code",
        "TIGER-AI-Lab/VL-Rethinker: openrlhf/trainer/ppo_utils/replay_buffer.py and "
        "experience_maker.py, openrlhf/models/loss.py, scripts/train_vlm_multi.sh",
    ),
    plan=(
        "scripts/train_vlm_multi.sh: 512 prompts of 8 rollouts in batches of 512: 8 updates per "
        "step, since active_sampling returns all rollouts (replay_buffer.py:432)"
    ),
    missing=(
        (
            "The shaped reward: -0.1 for an unfinished answer or one without a box, 1.1 for a "
            "correct one that rethinks by itself once or twice, max(1 - 0.2 n, -0.1) for one with "
            "n triggers, 3 or more: an environment's reward terms."
        ),
        "Continuations with more than four triggers are kept, as are those of wrong rollouts in "
        "groups with an accuracy above 0.7.",
        "The limit on what is continued: no rollout longer than the token limit minus 1,024.",
        "The clamp to 1 of a micro-batch's loss above 10.",
        "The sampling with top_p 0.95 and top_k 40.",
    ),
    deviations=(
        (
            "Forced rethinking and replay are on; both are off by the script's defaults, a data "
            "version of none and a filter of None."
        ),
        (
            "A step trains once on each of its rollouts with an advantage, and fills the other "
            "places from the buffer. The released run trains on all rollouts: do_filter is never "
            "passed, so active_sampling returns before its selection. That selection would keep "
            "half as many rollouts, drawn by |A|, with replacement, for 4 updates."
        ),
        (
            "The weights are |A|^alpha, as in the paper; the code draws by |A| + 1e-4. Replayed "
            "rollouts are drawn without replacement."
        ),
        (
            "The buffer holds earlier steps when it is drawn from; in the code it already holds "
            "the current step's rollouts with an advantage (keep_items)."
        ),
        "The mean is over the tokens of a minibatch; in the code, over 4 rollouts at a time.",
        (
            "The likelihood loss is averaged over all tokens of an update; in the code over those "
            "that it selects."
        ),
        "A = r - mean(r), as in the code.",
        "A cut is before `Wait`, `\\boxed` and an empty line; the code also cuts before `answer`.",
        (
            "A rollout rethinks if its text contains `wait`; the code counts `wait,`, `wait a` and "
            "`alternatively`."
        ),
    ),
    audit=(
        "buffer, weights, clip bounds, triggers, their probabilities and limits compared with the "
        "authors' code, constants with the script"
    ),
    shown=(
        "docs/vision_shown/vl_rethinker.md#results",
        "docs/guidance_shown/selective_replay.md#results",
        "tests/algo/test_replay_rules.py::test_weights_are_powers_of_the_advantage",
    ),
)
