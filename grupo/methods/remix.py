"""ReMix: old and new rollouts, then new ones alone. Liang et al., 2025, arXiv:2507.06892."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from random import Random
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor

from grupo.algo import divergences
from grupo.algo.losses import ClipWithin, Entropy, Loss
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import MAX_LOG_RATIO
from grupo.algo.replay_rules import ReplayPlan, ReplayRequest, of_this_step, without_replacement
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.controllers import EVERY_STEP, Controller, StepSwitch
from grupo.core.numbers import (
    Fraction,
    NonNegative,
    NumberOrSchedule,
    PositiveFraction,
    PositiveInt,
)
from grupo.core.paper import Paper, Source
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.requires import Requires
from grupo.core.types import Task
from grupo.core.units import RolloutSteps
from grupo.method import Method
from grupo.rollouts.curricula import Curriculum, CurriculumRequest, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def remix(
    group_size: PositiveInt = 8,
    old_share: Annotated[float, Interval(ge=0, lt=1)] = 0.4,
    passes: PositiveInt = 2,
    window: RolloutSteps = 2,
    reincarnation_step: RolloutSteps = 50,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.001,
    entropy_coef: NonNegative = 0.001,
    buffer_capacity: PositiveInt = 4096,
) -> Method:
    """GRPO on old and new rollouts in the first T steps, then on new ones with a new reference.

    loss = -min(r A, clip(r, c - clip_eps, c + clip_eps) A)
    + kl_coef (w k3(pi || base) + (1 - w) k3(pi || pi_k)) - entropy_coef H
    with r = pi / pi_(k-i), c = pi_k / pi_(k-i), and w falling from 1 to 0.5 between steps 50 and
    91. In the first T steps a share old_share of the batch was sampled i <= window steps ago, and
    the step samples as many fewer tasks and makes `passes` updates on the batch. Then base becomes
    pi_T, all rollouts are new, and a step makes one update.

    Args:
        group_size: rollouts per task.
        old_share: p, the share of old rollouts (paper: 0.4).
        passes: m, the updates on the same batch (paper: 2).
        window: N, rollout steps of which old rollouts are drawn (paper: 2).
        reincarnation_step: T, rollout steps of the first phase (paper: 50; 100 with PPO).
        clip_eps: half the width of the clip (our choice).
        kl_coef: beta, weight of the KL term (our choice).
        entropy_coef: c, weight of the entropy (our choice).
        buffer_capacity: rollouts that are kept (our choice).
    """
    T = reincarnation_step
    kl = kl_coef * ConvexKL(ReferenceWeight())
    return Method(
        curriculum=PartOfTasks(ShuffledTasks(), StepSwitch(T, 1 - old_share, 1.0)),
        sampler=GroupSampler(group_size),
        loss=ClipWithin(CentredOnCurrent(clip_eps)) + kl + (-entropy_coef) * Entropy(),
        updates=Passes(StepSwitch(T, passes, 1)),
        reference=ReferenceUpdate(1.0, every=T, until=T),
        replay=MixedReplay(StepSwitch(T, old_share, 0.0), window, buffer_capacity),
    )


@component
class CentredOnCurrent:
    """c - eps and c + eps with c = pi_k / pi_old, pi_k the policy at the start of the step (eq. 3).

    Args:
        eps: half the width of the interval.
    """

    eps: NonNegative

    requires = Requires(signals=("logp@current",))

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        log_ratio = batch.signals["logp@current"] - batch.old_logp
        centre = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
        return centre - self.eps, centre + self.eps


@component
class ConvexKL(Loss):
    """w k3(pi || reference) + (1 - w) k3(pi || policy at the start of the step), in nats, (N, T).

    Args:
        ref_weight: w.
    """

    ref_weight: Fraction

    requires = Requires(signals=("logp@ref", "logp@current"))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        to_ref = divergences.k3(pi.logp, batch.signals["logp@ref"])
        to_current = divergences.k3(pi.logp, batch.signals["logp@current"])
        return self.ref_weight * to_ref + (1 - self.ref_weight) * to_current

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {"policy/kl_ref": divergences.k3(pi.logp, batch.signals["logp@ref"])}


@component
class ReferenceWeight(Controller):
    """lambda(t) = max(1 - 0.1 ceil(max(t - 50, 0) / 10), 0.5) in step t, from 1.

    Args:
        hold_steps: rollout steps with the weight 1 (paper: 50).
        drop_steps: rollout steps between two drops by 0.1 (paper: 10).
        floor: smallest weight (paper: 0.5).
        metric: a metric that every step has; its values are counted.
    """

    hold_steps: PositiveInt = 50
    drop_steps: PositiveInt = 10
    floor: float = 0.5
    metric: str = EVERY_STEP  # pyrefly: ignore[bad-override]

    def next_value(self, metric_values: Sequence[float]) -> float:
        t = len(metric_values) + 1
        drops = ceil(max(t - self.hold_steps, 0) / self.drop_steps)
        return max(1 - 0.1 * drops, self.floor)


@component
class MixedReplay:
    """Old rollouts beside all of the step's: `old_share` of the batch, uniform over `window` steps.

    Args:
        old_share: drawn rollouts as a share of the batch, below 1.
        window: rollout steps of which rollouts are drawn: those since `window` steps ago.
        capacity: rollouts in the replay buffer; the oldest leave first.
    """

    old_share: Annotated[NumberOrSchedule, Interval(ge=0, lt=1)]
    window: RolloutSteps
    capacity: PositiveInt

    @property
    def requires(self) -> Requires:
        return Requires(replay_buffer=self.capacity, signals=("off_context", "sampled"))

    def __call__(self, request: ReplayRequest) -> ReplayPlan:
        fresh = torch.ones(len(request.batch.reward), dtype=torch.bool)
        count = round(len(fresh) * float(self.old_share) / (1 - float(self.old_share)))
        is_recent = request.step - request.replay_buffer.step <= self.window
        drawn = tuple(without_replacement(is_recent.double(), count, request.rng))
        return ReplayPlan(drawn, fresh, of_this_step(request.batch))


@component
class PartOfTasks:
    """A share of the tasks that a step asks for; replayed rollouts take the other places.

    Args:
        inner: the curriculum that chooses the tasks.
        share: number of tasks as a share of `prompts_per_step`.
    """

    inner: Curriculum
    share: PositiveFraction

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        num_tasks = max(1, round(self.share * request.num_tasks))
        return self.inner(replace(request, num_tasks=num_tasks))


@component
class Passes:
    """Updates on the whole batch, one in each of `passes` passes, a number that may change.

    Args:
        passes: number of passes, rounded; at least 1.
    """

    passes: Annotated[NumberOrSchedule, Interval(ge=1)]

    def __call__(self, batch: Batch, rng: Random) -> Iterator[Batch]:
        return Updates(epochs=round(self.passes))(batch, rng)


PAPER = Paper(
    title="Squeeze the Soaked Sponge: Efficient Off-policy Reinforcement Finetuning for Large "
    "Language Model",
    use="Rollouts are expensive, and each is used for one update only.",
    tags=("off-policy", "kl"),
    checked=("golden", "properties", "run"),
    catalogue=("remix",),
    source=Source(
        "third_party",
        "a public note of the ICLR 2026 paper in the Paper-Notes collection: all formulas and the"
        " constants p, m, N, T and lambda; the released code has the evaluation only",
    ),
    plan="not stated in any source that was opened; m updates per step, each on the whole batch",
    missing=("ReMix-PPO: the same with a value head.",),
    deviations=(
        "An old rollout keeps the group advantage that it was given; the formula has that of pi_k.",
        "The second policy of the KL term is that at the start of the step, the precedent of the"
        " trained one; the formula has the index k - 1.",
        "KL divergences are k3 estimates from the tokens of the batch, old ones included.",
        "The entropy is a bonus and lowers the loss; the note adds c H to the loss it minimises.",
        "eps, beta, c and the capacity of the replay buffer are our choice.",
    ),
    audit="objective, clip, schedule of lambda, phases and constants compared with the note",
    shown=("docs/guidance_shown/remix.md#remix-on-sums-of-digits",),
)
