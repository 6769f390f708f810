"""The weights of the reference policy after each rollout step, as numbers.

Compared: reference_t as a function of the policies after the steps 1 to t, and of the initial one.

Written from
    apple/ml-diffucoder, recipes/config_coupled_code.yaml (ref_model_sync_steps 64, num_iterations
        2), with huggingface/trl, trl/trainer/callbacks.py, `SyncRefModelCallback`: after each
        optimizer step whose number is a multiple of 64, the reference moves by
        ref_model_mixup_alpha, whose default is 0.6;
    the record of deepseek_r1, which cites section B.4 of arXiv:2501.12948: a new reference every
        400 optimizer updates, of which a rollout step has 16; the paper was not opened;
    LunjunZhang/ema-pg, math/verl/verl/trainer/ppo/ray_trainer.py, lines 1404 to 1416, and
        train_deepscaler_8k_ema_pg.sh: tau 0.95, period 10, in rollout steps that count from 1;
    TencentARC/GRPO-CARE, src/r1-v/src/open_r1/trainer/ema_trainer.py, lines 315 to 330 and 2781 to
        2792, and scripts/run_grpo_care_margin0.01_seed_bench_r1.sh: decay 0.995, every 10 optimizer
        steps, one of which a rollout step has;
    the record of prorl: hard resets to the policy every 400 steps, our reading; the paper,
        arXiv:2505.24864, was not opened;
    a public note on ReMix, arXiv:2507.06892: at step T the reference becomes the policy, once;
    lasgroup/SDPO, verl/workers/actor/dp_actor.py, `_update_teacher`, and
        verl/trainer/config/actor/actor.yaml (0.05), once a rollout step, for SRPO.
"""

from collections.abc import Callable, Sequence


def mixed_every_optimizer_steps(
    policies: Sequence[float], initial: float, *, alpha: float, every: int, updates_per_step: int
) -> list[float]:
    """The reference moves by alpha after optimizer steps whose number is a multiple of `every`.

    The policy within a rollout step is not known. `every` is a multiple of `updates_per_step`, so
    that the reference moves only where a rollout step ends.
    """
    reference = initial
    result = []
    for step, policy in enumerate(policies, 1):
        if step * updates_per_step % every == 0:
            reference = (1 - alpha) * reference + alpha * policy
        result.append(reference)
    return result


def averaged_every_steps(
    policies: Sequence[float], initial: float, *, decay: float, every: int
) -> list[float]:
    """ref <- decay ref + (1 - decay) policy after each `every`-th step."""
    reference = initial
    result = []
    for step, policy in enumerate(policies, 1):
        if step % every == 0:
            reference = decay * reference + (1 - decay) * policy
        result.append(reference)
    return result


def replaced_once(policies: Sequence[float], initial: float, *, at: int) -> list[float]:
    """The initial policy until the step `at`, whose policy is the reference after it."""
    return [initial if step < at else policies[at - 1] for step in range(1, len(policies) + 1)]


Reference = Callable[[Sequence[float], float], list[float]]

REFERENCES: dict[str, Reference] = {
    "coupled_grpo": lambda policies, initial: mixed_every_optimizer_steps(
        policies, initial, alpha=0.6, every=64, updates_per_step=2
    ),
    "deepseek_r1": lambda policies, initial: mixed_every_optimizer_steps(
        policies, initial, alpha=1.0, every=400, updates_per_step=16
    ),
    "ema_pg": lambda policies, initial: averaged_every_steps(
        policies, initial, decay=0.95, every=10
    ),
    "grpo_care": lambda policies, initial: averaged_every_steps(
        policies, initial, decay=0.995, every=10
    ),
    "prorl": lambda policies, initial: averaged_every_steps(
        policies, initial, decay=0.0, every=400
    ),
    "remix": lambda policies, initial: replaced_once(policies, initial, at=50),
    "srpo": lambda policies, initial: averaged_every_steps(policies, initial, decay=0.95, every=1),
}
