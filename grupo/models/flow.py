"""Flow-matching models of images: an action is a denoising step."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grupo.core.aux_heads import Head, Helper
from grupo.core.batch import Batch, Signals
from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.reference_update import Follow
from grupo.core.signal_names import compares, split
from grupo.core.types import Observation, Rollout, Task
from grupo.core.validation import check
from grupo.models import loading
from grupo.models.aux_heads import Helpers
from grupo.models.aux_models import Company, Other
from grupo.models.aux_models_load import accompany
from grupo.models.flow_matching import backbone
from grupo.models.flow_matching.actor import FlowAct, plain, reread
from grupo.models.flow_matching.backbone import Field
from grupo.models.flow_matching.evaluate import OLD, Old, Reading
from grupo.models.flow_matching.sampler import Course, Drawing
from grupo.models.flow_matching.sde_step import COMPARED, MEASURES, Steps, sigmas
from grupo.models.flow_matching.weight_sync import Apart, Own
from grupo.models.loading import Lora
from grupo.models.scorers import Speaker, laid
from grupo.models.spec import OTHERS
from grupo.models.trainable import Trained


@piece
class Flow:
    """A flow-matching model, by folder.

    An image takes `steps` steps; those in `window`, all if it is empty, are drawn with noise of
    size `noise` and trained, the others are not. `guidance` 1 is none; `budget` is how many steps a
    micro-batch holds; `dtype` is what is computed in, float32 where a device would but imitate it.
    """

    model: str
    lora: Lora | None = None
    dtype: str = "float32"
    device: str = "auto"
    steps: int = 10
    window: tuple[int, ...] = ()
    noise: float = 0.7
    guidance: float = 1.0
    budget: int = 2048

    @property
    def signals(self) -> tuple[str, ...]:
        """What its policy can say of a step."""
        return (*MEASURES, *COMPARED)

    @property
    def others(self) -> tuple[str, ...]:
        """Who is always there."""
        return (*OTHERS, OLD)

    def check(self) -> None:
        """Refuse numbers that cannot be, and a device that is not here."""
        within = all(0 <= step < self.steps for step in self.window)
        check(
            [
                ("steps", self.steps, self.steps >= 1, "1 or more"),
                ("window", self.window, within, f"numbers of steps, 0 to {self.steps - 1}"),
                ("noise", self.noise, self.noise > 0, "above 0"),
                ("guidance", self.guidance, self.guidance >= 0, "0 or more; 1 is none"),
                ("budget", self.budget, self.budget >= 1, "1 or more"),
                ("dtype", self.dtype, self.dtype in loading.DTYPES, " or ".join(loading.DTYPES)),
            ]
        )
        loading.device_of(self.device)

    def build(self) -> "FlowPolicy":
        """Load the model; raises `Refused` when it cannot be used."""
        self.check()
        return FlowPolicy(self)


class FlowPolicy(Trained):
    """A loaded flow-matching model."""

    unit = "denoising steps"

    def __init__(self, spec: Flow) -> None:
        self.spec, self.device = spec, loading.device_of(spec.device)
        self.painter = backbone.load(spec.model, self.device)
        module = self.painter.module
        super().__init__(
            spec.model,
            backbone.adapted(module, spec.lora) if spec.lora else module,
            adapted=spec.lora is not None,
            budget=spec.budget,
            dtype=loading.computed_in(spec.dtype, self.device),
        )
        t = self.painter.times(spec.steps)
        window = frozenset(spec.window or range(spec.steps))
        self.course = Course(t, sigmas(t, spec.noise), window)
        self.field = Field(self.painter, self.module, spec.guidance)
        self.reading = Reading(self.field, self.course, self.device)
        self.voice = Own(self.field)
        self.others: Mapping[str, Speaker[Steps]] = {}
        self.helpers = self.helped(())
        imitates = loading.imitates(spec.dtype, self.device)
        self.remarks: Sequence[str] = [imitates] if imitates else ()

    def admit(self, tasks: Sequence[Task]) -> None:
        """Refuse prompts that the model cannot read."""
        for task in tasks:
            self.painter.check(plain(task.prompt))

    def act(self, key: int) -> FlowAct:
        """How samplers use the policy."""
        at_once = max(1, self.budget // self.spec.steps)
        queue = self.queue(Drawing(self.voice.field, self.course, at_once))
        return FlowAct(self.painter, self.course, queue, key, self.version)

    def speak_apart(self) -> None:
        """Have weights of its own to draw with, so that it can learn meanwhile."""
        self.voice = Apart(self.field)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """Latents of every row (N, L + 1, ...), from noise to image, and what its prompt says."""
        inputs = self.reading.encode(rollouts)
        if OLD not in self.others:
            return inputs
        with self.autocast():
            return {**inputs, OLD: self.reading.velocities(inputs, self.budget)}

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and what else is asked for of every step, (N, T), 0 where masked."""
        own = self.spoken(batch)
        compared = dict.fromkeys(split(name)[1] for name in names if compares(name))
        with torch.no_grad():
            others = {who: self.others[who].spoken(batch) for who in compared}
        helping = self.helpers.names.intersection(names)
        said = own.measured({"logp", *names} - helping, others)
        said |= {name: self.helpers.say(name, own.t) for name in sorted(helping)}
        return laid(batch, said)

    def spoken(self, batch: Batch) -> Steps:
        """What the steps of a batch are drawn from, in the order of its mask."""
        with self.autocast():
            return self.reading.steps(batch)

    def accompanied(
        self, needs: Collection[str], follow: Follow, others: Sequence[Other]
    ) -> Company:
        """Everybody whom `needs` names, loaded; "old" is itself when a batch is collated."""
        company, speakers = accompany(self, needs, follow, others)
        old = {OLD: Old(self.reading)} if any(split(name)[1] == OLD for name in needs) else {}
        self.others = {**speakers, **old}
        return replace(company, speakers=self.others)

    def helped(self, helpers: Collection[Helper]) -> Helpers:
        """Take on helpers, new ones: numbers only."""
        for helper in helpers:
            if isinstance(helper, Head):
                raise Refused(f"method: {helper} reads features. Allowed: numbers, of a flow.")
        self.helpers = Helpers(helpers, 1, self.device)
        return self.helpers

    def micro(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices, so many that their steps fit the budget."""
        longest = int(batch.mask.sum(1).max()) if len(batch.mask) else 0
        self.most = max(1, self.budget // max(1, longest))
        yield from torch.arange(len(batch.mask)).split(self.most)

    def copy(self) -> "FlowPolicy":
        """Another policy as training found this one, frozen."""
        start = FlowPolicy(self.spec)
        start.module.requires_grad_(False)
        return start

    def reread(self, rollout: Rollout, seen: Observation) -> Rollout:
        """The rollout as if `seen` had been its prompt."""
        return reread(rollout, seen)

    def check_teacher(self, name: str, teacher: Any) -> None:
        """Refuse whoever draws other latents."""
        theirs = getattr(getattr(teacher, "painter", None), "shape", None)
        if theirs != self.painter.shape:
            raise Refused(f"others: {name!r} draws {theirs}. Allowed: {self.painter.shape}.")

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write a folder that `Flow` loads; adapters merged into the model, or apart."""
        self.painter.save(self.merged() if merge else self.module, folder)
