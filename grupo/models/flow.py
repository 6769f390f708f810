"""Flow-matching models of images; a response consists of denoising steps."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
from annotated_types import Ge
from torch import Tensor

from grupo.core.aux_heads import AuxHead, LearnedScalar
from grupo.core.batch import Batch, Signals
from grupo.core.component import check_field, component
from grupo.core.dtypes import DtypeName
from grupo.core.ranges import PositiveFloat, PositiveInt
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import is_comparison, split_name
from grupo.core.types import Observation, Rollout, Task
from grupo.models import devices
from grupo.models.aux_heads import AuxHeads
from grupo.models.aux_models import load_aux_models
from grupo.models.base import BUILTIN_MODELS, AuxModel, AuxModels
from grupo.models.flow_matching import backbone
from grupo.models.flow_matching.actor import FlowActor, prompt_text, replace_prompt
from grupo.models.flow_matching.backbone import VelocityField
from grupo.models.flow_matching.evaluate import OLD, OldPolicy, TrajectoryEvaluator
from grupo.models.flow_matching.sampler import FlowSampler, NoiseSchedule
from grupo.models.flow_matching.sde_step import STEP_DIVERGENCES, STEP_SIGNALS, SDESteps, sde_sigmas
from grupo.models.flow_matching.weight_sync import CopiedFlowWeights, SharedFlowWeights
from grupo.models.lora import Lora
from grupo.models.signal_models import DistributionModel, scatter_to_batch
from grupo.models.trainable import TrainablePolicy
from grupo.util.errors import ConfigError


@component
class Flow:
    """A flow-matching model of images.

    Args:
        model: folder of a `SmallFlow` or of a Stable Diffusion 3 pipeline of diffusers.
        lora: low-rank adapters to train instead of all weights. Default: all weights.
        dtype: compute type, "float32" or "bfloat16"; float32 where the device would emulate it.
        device: "auto" (the first GPU, otherwise the CPU), "cpu", "cuda" or "cuda:0".
        num_steps: denoising steps of an image.
        sde_window: indices of the steps that are sampled with noise and trained; the others are
            deterministic. Default: all steps.
        noise_level: scale a of the noise, sigma_t = a sqrt(t / (1 - t)).
        guidance_scale: scale of classifier-free guidance; 1 is none.
        tokens_per_microbatch: denoising steps evaluated at once.
    """

    model: str
    lora: Lora | None = None
    dtype: DtypeName = "float32"
    device: str = "auto"
    num_steps: PositiveInt = 10
    sde_window: tuple[int, ...] = ()
    noise_level: PositiveFloat = 0.7
    guidance_scale: Annotated[float, Ge(0), "none == 1"] = 1.0
    tokens_per_microbatch: PositiveInt = 2048

    def __post_init__(self) -> None:
        last = self.num_steps - 1
        in_window = all(0 <= step <= last for step in self.sde_window)
        check_field(self, "sde_window", in_window, f"indices of steps, 0 to {last}")

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals of a denoising step."""
        return (*STEP_SIGNALS, *STEP_DIVERGENCES)

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Models that need no configuration."""
        return (*BUILTIN_MODELS, OLD)

    def check(self) -> None:
        """Raise `ConfigError` for a missing device."""
        devices.resolve_device(self.device)

    def build(self) -> "FlowPolicy":
        """Load the model; raise `ConfigError` if it cannot be used."""
        self.check()
        return FlowPolicy(self)


class FlowPolicy(TrainablePolicy):
    """A flow-matching model, loaded as its `Flow` describes."""

    microbatch_unit = "denoising steps"

    def __init__(self, spec: Flow) -> None:
        self.spec = spec
        device = devices.resolve_device(spec.device)
        self.backbone = backbone.load(spec.model, device)
        module = self.backbone.module
        super().__init__(
            spec.model,
            backbone.add_adapters(module, spec.lora) if spec.lora else module,
            has_adapters=spec.lora is not None,
            tokens_per_microbatch=spec.tokens_per_microbatch,
            dtype=devices.compute_dtype(spec.dtype, device),
        )
        t = self.backbone.timesteps(spec.num_steps)
        window = frozenset(spec.sde_window or range(spec.num_steps))
        self.noise_schedule = NoiseSchedule(t, sde_sigmas(t, spec.noise_level), window)
        self.velocity_field = VelocityField(self.backbone, self.module, spec.guidance_scale)
        self.evaluator = TrajectoryEvaluator(self.velocity_field, self.noise_schedule, self.device)
        self.weight_sync = SharedFlowWeights(self.velocity_field)
        self.signal_models: Mapping[str, DistributionModel[SDESteps]] = {}
        self.aux_heads = self.attach_heads(())
        emulated = devices.dtype_warning(spec.dtype, self.device)
        self.warnings: Sequence[str] = [emulated] if emulated else ()

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a prompt that the model cannot encode."""
        for task in tasks:
            self.backbone.check_prompt(prompt_text(task.prompt))

    def actor(self, key: int) -> FlowActor:
        """Return a sampler's handle on the policy, with random streams derived from `key`."""
        max_batch_size = max(1, self.tokens_per_microbatch // self.spec.num_steps)
        field = self.weight_sync.velocity_field
        batcher = self.make_batcher(FlowSampler(field, self.noise_schedule, max_batch_size))
        return FlowActor(self.backbone, self.noise_schedule, batcher, key, self.policy_version)

    def use_weight_copy_for_generation(self) -> None:
        """From now on, generate from a copy of the weights, so that training can run meanwhile."""
        self.weight_sync = CopiedFlowWeights(self.velocity_field)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """Latents of every row (N, L + 1, *shape), from noise to image, and prompt embeddings.

        If a method compares with the policy "old", its velocities are computed here.
        """
        inputs = self.evaluator.encode(rollouts)
        if OLD not in self.signal_models:
            return inputs
        with self.autocast():
            velocities = self.evaluator.all_velocities(inputs, self.tokens_per_microbatch)
        return {**inputs, OLD: velocities}

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and the signals in `names` of every step, (N, T), 0 where masked."""
        own = self.distributions(batch)
        compared = dict.fromkeys(split_name(name)[1] for name in names if is_comparison(name))
        with torch.no_grad():
            others = {name: self.signal_models[name].distributions(batch) for name in compared}
        predicted = self.aux_heads.names.intersection(names)
        values = own.compute_signals(sorted({"logp", *names} - predicted), others)
        for name in sorted(predicted):
            values[name] = self.aux_heads.predict(name, own.t)
        return scatter_to_batch(batch, values)

    def distributions(self, batch: Batch) -> SDESteps:
        """Distributions of a batch's steps, in the order of its mask."""
        with self.autocast():
            return self.evaluator.sde_steps(batch)

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: Sequence[AuxModel],
    ) -> AuxModels:
        """Load every auxiliary model that `required_signals` names.

        "old" is the policy at the time when a batch is collated.
        """
        loaded, signal_models = load_aux_models(
            self, required_signals, reference_update, aux_models
        )
        needs_old = any(split_name(name)[1] == OLD for name in required_signals)
        old = {OLD: OldPolicy(self.evaluator)} if needs_old else {}
        self.signal_models = {**signal_models, **old}
        return replace(loaded, signal_models=self.signal_models)

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> AuxHeads:
        """Create learned scalars; raise `ConfigError` for heads on hidden states."""
        for aux_head in aux_heads:
            if not isinstance(aux_head, LearnedScalar):
                raise ConfigError(
                    f"method: {aux_head} needs hidden states. Allowed with a flow: LearnedScalar."
                )
        self.aux_heads = AuxHeads(aux_heads, 1, self.device)
        return self.aux_heads

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices of micro-batches of `tokens_per_microbatch` denoising steps."""
        longest = int(batch.mask.sum(1).max()) if len(batch.mask) else 0
        self.max_rows = max(1, self.tokens_per_microbatch // max(1, longest))
        yield from torch.arange(len(batch.mask)).split(self.max_rows)

    def load_frozen_copy(self) -> "FlowPolicy":
        """Load another policy from the same folder, frozen: the weights from before training."""
        policy = FlowPolicy(self.spec)
        policy.module.requires_grad_(False)
        return policy

    def replace_prompt(self, rollout: Rollout, observation: Observation) -> Rollout:
        """The rollout with `observation` in place of its prompt."""
        return replace_prompt(rollout, observation)

    def check_teacher(self, name: str, teacher: Any) -> None:
        """Raise `ConfigError` for a teacher with latents of another shape."""
        shape = getattr(getattr(teacher, "backbone", None), "shape", None)
        if shape != self.backbone.shape:
            raise ConfigError(
                f"aux_models: {name!r} has latents of shape {shape}."
                f" Allowed: {self.backbone.shape}."
            )

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write the model as `Flow` loads it, with adapters merged or separate."""
        self.backbone.save(self.merged_model() if merge else self.module, folder)
