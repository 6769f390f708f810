"""SeeUPO: turns are updated given the later turns' ratios. Hu et al., 2026, arXiv:2602.06554."""

from grupo.algo.advantages import Center, ClampAdvantage, StandardiseBatch, chain
from grupo.algo.advantages.turn_table import batch_turn_mean
from grupo.algo.losses import KL
from grupo.algo.losses.turn_level import ReverseClip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def seeupo(
    group_size: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.002,
    epochs: PositiveInt = 10,
) -> Method:
    """A = z-score over the batch of r - mean r, clamped to [-3, 3]; `epochs` updates a step.

    The standard deviation of the z-score is by n - 1.
    loss_t = -min(r_t M A, clip(r_t) M A), M the clipped product of the clipped current ratios of
    later turns.

    Args:
        group_size: rollouts per task (authors' code: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy.
        epochs: updates per step.
    """
    # With one update M is 1; with one turn the ratio is GSPO's. The authors' configuration forbids
    # a group's own deviation, so the advantage is scaled by the whole batch.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), StandardiseBatch(), ClampAdvantage(-3.0, 3.0)),
        loss=ReverseClip(clip_eps) + kl_coef * KL(),
        aggregation=batch_turn_mean,
        updates=Updates(epochs),
    )


PAPER = Paper(
    title="SeeUPO: Sequence-Level Agentic-RL with Convergence Guarantees",
    use="Agents of many turns where GRPO is unstable, and several updates a step are affordable.",
    tags=("agents", "process-reward", "importance-sampling"),
    checked=("golden", "properties", "run"),
    catalogue=("seeupo",),
    source=Source(
        "code",
        (
            "modelscope/AgentEvolver, branch seeupo, beyondagent/module/trainer/ba_ray_trainer.py "
            "and launcher/qwen3_appworld/qwen3-seeupo-appworld.yaml; eq. 3 to 9"
        ),
    ),
    plan=(
        "qwen3-seeupo-appworld.yaml: 10 turns, for each one pass and one minibatch: 10 updates "
        "per step"
    ),
    missing=(
        "The reward of success is raised to 1.5 and others are halved (magnify_success).",
        "The reward of -1 for garbled or repetitive answers (compute_madness).",
        "The temperature of 0.9 of the configuration.",
    ),
    deviations=(
        "Mean and deviation of the z-score are computed once, over all rollouts; the code computes"
        " them anew for the batch of each turn.",
        (
            "The paper makes one update per turn, the last turn first; here each update moves all "
            "turns, and M is computed from the current policy."
        ),
        (
            "The ratios are to the policy before the step; the code measures old log-probs anew "
            "before the pass of each turn."
        ),
        (
            "r_t is the geometric mean of a turn's token ratios. The code's ratio is that of a "
            "token, with a dual clip of 3, and is 1 in each pass: its configuration sets "
            "algorithm.loss_mode to gspo, but the branch reads actor.policy_loss.loss_mode, which "
            "is vanilla (dp_actor.py:435)."
        ),
    ),
    audit=(
        "advantage (special_norm, torch.std), clamps of ratios and products, constants and number "
        "of updates compared with ba_ray_trainer.py and the configuration"
    ),
)
