"""Flow-matching models of images: an action is a denoising step."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grupo.core.aux_heads import AuxHead, LinearHead
from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import is_comparison, split_name
from grupo.core.types import Observation, Rollout, Task
from grupo.core.validation import check_constraints
from grupo.models import loading
from grupo.models.aux_heads import AuxHeads
from grupo.models.aux_models import AuxModel, AuxModels
from grupo.models.aux_models_load import load_aux_models
from grupo.models.flow_matching import backbone
from grupo.models.flow_matching.actor import FlowActor, prompt_text, replace_prompt
from grupo.models.flow_matching.backbone import VelocityField
from grupo.models.flow_matching.evaluate import OLD, OldPolicy, TrajectoryEvaluator
from grupo.models.flow_matching.sampler import FlowSampler, NoiseSchedule
from grupo.models.flow_matching.sde_step import STEP_DIVERGENCES, STEP_SIGNALS, SDESteps, sde_sigmas
from grupo.models.flow_matching.weight_sync import CopiedFlowWeights, SharedFlowWeights
from grupo.models.loading import Lora
from grupo.models.scorers import DistributionScorer, scatter_to_batch
from grupo.models.spec import BUILTIN_MODELS
from grupo.models.trainable import TrainablePolicy


@component
class Flow:
    """A flow-matching model, by folder.

    An image takes `steps` steps; those in `window`, all if it is empty, are drawn with noise of
    size `noise` and trained, the others are not. `guidance_scale` 1 is none; `budget` is how many steps a
    micro-batch holds; `dtype` is what is computed in, float32 where a device would but imitate it.
    """

    model: str
    lora: Lora | None = None
    dtype: str = "float32"
    device: str = "auto"
    num_steps: int = 10
    sde_window: tuple[int, ...] = ()
    noise_level: float = 0.7
    guidance_scale: float = 1.0
    tokens_per_microbatch: int = 2048

    @property
    def signals(self) -> tuple[str, ...]:
        """What its policy can say of a step."""
        return (*STEP_SIGNALS, *STEP_DIVERGENCES)

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Who is always there."""
        return (*BUILTIN_MODELS, OLD)

    def check(self) -> None:
        """Refuse numbers that cannot be, and a device that is not here."""
        within = all(0 <= step < self.num_steps for step in self.sde_window)
        check_constraints(
            [
                ("steps", self.num_steps, self.num_steps >= 1, "1 or more"),
                ("window", self.sde_window, within, f"numbers of steps, 0 to {self.num_steps - 1}"),
                ("noise", self.noise_level, self.noise_level > 0, "above 0"),
                ("guidance", self.guidance_scale, self.guidance_scale >= 0, "0 or more; 1 is none"),
                (
                    "budget",
                    self.tokens_per_microbatch,
                    self.tokens_per_microbatch >= 1,
                    "1 or more",
                ),
                ("dtype", self.dtype, self.dtype in loading.DTYPES, " or ".join(loading.DTYPES)),
            ]
        )
        loading.resolve_device(self.device)

    def build(self) -> "FlowPolicy":
        """Load the model; raises `ConfigError` when it cannot be used."""
        self.check()
        return FlowPolicy(self)


class FlowPolicy(TrainablePolicy):
    """A loaded flow-matching model."""

    microbatch_unit = "denoising steps"

    def __init__(self, spec: Flow) -> None:
        self.spec, self.device = spec, loading.resolve_device(spec.device)
        self.backbone = backbone.load(spec.model, self.device)
        module = self.backbone.module
        super().__init__(
            spec.model,
            backbone.add_adapters(module, spec.lora) if spec.lora else module,
            has_adapters=spec.lora is not None,
            tokens_per_microbatch=spec.tokens_per_microbatch,
            dtype=loading.compute_dtype(spec.dtype, self.device),
        )
        t = self.backbone.timesteps(spec.num_steps)
        window = frozenset(spec.sde_window or range(spec.num_steps))
        self.noise_schedule = NoiseSchedule(t, sde_sigmas(t, spec.noise_level), window)
        self.velocity_field = VelocityField(self.backbone, self.module, spec.guidance_scale)
        self.evaluator = TrajectoryEvaluator(self.velocity_field, self.noise_schedule, self.device)
        self.weight_sync = SharedFlowWeights(self.velocity_field)
        self.scorers: Mapping[str, DistributionScorer[SDESteps]] = {}
        self.aux_heads = self.attach_heads(())
        imitates = loading.dtype_warning(spec.dtype, self.device)
        self.warnings: Sequence[str] = [imitates] if imitates else ()

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse prompts that the model cannot read."""
        for task in tasks:
            self.backbone.check_prompt(prompt_text(task.prompt))

    def actor(self, key: int) -> FlowActor:
        """How samplers use the policy."""
        at_once = max(1, self.tokens_per_microbatch // self.spec.num_steps)
        queue = self.make_batcher(
            FlowSampler(self.weight_sync.velocity_field, self.noise_schedule, at_once)
        )
        return FlowActor(self.backbone, self.noise_schedule, queue, key, self.policy_version)

    def detach_sampler(self) -> None:
        """Have weights of its own to draw with, so that it can learn meanwhile."""
        self.weight_sync = CopiedFlowWeights(self.velocity_field)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """Latents of every row (N, L + 1, ...), from noise to image, and what its prompt says."""
        inputs = self.evaluator.encode(rollouts)
        if OLD not in self.scorers:
            return inputs
        with self.autocast():
            return {
                **inputs,
                OLD: self.evaluator.all_velocities(inputs, self.tokens_per_microbatch),
            }

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and what else is asked for of every step, (N, T), 0 where masked."""
        own = self.distributions(batch)
        compared = dict.fromkeys(split_name(name)[1] for name in names if is_comparison(name))
        with torch.no_grad():
            others = {who: self.scorers[who].distributions(batch) for who in compared}
        helping = self.aux_heads.names.intersection(names)
        said = own.compute_signals({"logp", *names} - helping, others)
        said |= {name: self.aux_heads.predict(name, own.t) for name in sorted(helping)}
        return scatter_to_batch(batch, said)

    def distributions(self, batch: Batch) -> SDESteps:
        """What the steps of a batch are drawn from, in the order of its mask."""
        with self.autocast():
            return self.evaluator.sde_steps(batch)

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: Sequence[AuxModel],
    ) -> AuxModels:
        """Everybody whom `required_signals` names, loaded; "old" is itself when a batch is collated."""
        company, speakers = load_aux_models(self, required_signals, reference_update, aux_models)
        old = (
            {OLD: OldPolicy(self.evaluator)}
            if any(split_name(name)[1] == OLD for name in required_signals)
            else {}
        )
        self.scorers = {**speakers, **old}
        return replace(company, scorers=self.scorers)

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> AuxHeads:
        """Take on helpers, new ones: numbers only."""
        for helper in aux_heads:
            if isinstance(helper, LinearHead):
                raise ConfigError(f"method: {helper} reads features. Allowed: numbers, of a flow.")
        self.aux_heads = AuxHeads(aux_heads, 1, self.device)
        return self.aux_heads

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices, so many that their steps fit the budget."""
        longest = int(batch.mask.sum(1).max()) if len(batch.mask) else 0
        self.max_rows = max(1, self.tokens_per_microbatch // max(1, longest))
        yield from torch.arange(len(batch.mask)).split(self.max_rows)

    def load_frozen_copy(self) -> "FlowPolicy":
        """Another policy as training found this one, frozen."""
        start = FlowPolicy(self.spec)
        start.module.requires_grad_(False)
        return start

    def replace_prompt(self, rollout: Rollout, observation: Observation) -> Rollout:
        """The rollout as if `seen` had been its prompt."""
        return replace_prompt(rollout, observation)

    def check_teacher(self, name: str, teacher: Any) -> None:
        """Refuse whoever draws other latents."""
        theirs = getattr(getattr(teacher, "backbone", None), "shape", None)
        if theirs != self.backbone.shape:
            raise ConfigError(f"others: {name!r} draws {theirs}. Allowed: {self.backbone.shape}.")

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write a folder that `Flow` loads; adapters merged into the model, or apart."""
        self.backbone.save(self.merged_model() if merge else self.module, folder)
