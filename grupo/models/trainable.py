"""Base class of policies: a module, its trained weights, micro-batch size and compute dtype."""

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from grupo.core.dtypes import FULL_PRECISION
from grupo.core.types import Rollout
from grupo.core.validation import PromptLimit
from grupo.inference.batcher import BatchHandler
from grupo.inference.counting_batcher import CountingBatcher, ReplyT, RequestT
from grupo.models.quiet_loading import quiet_transformers
from grupo.util.errors import ConfigError
from grupo.util.sharded_tensors import sharded_like


class Saveable(Protocol):
    """An object of transformers that is exported with the model, e.g. its tokenizer."""

    def save_pretrained(self, folder: Any, /) -> Any: ...


class TrainablePolicy:
    """A module whose parameters, or adapters on it, are trained.

    Args:
        name: folder or hub name, for messages.
        module: the model, with adapters if there are any.
        saveables: objects that are exported with the model.
        has_adapters: whether adapters are trained instead of all weights.
        tokens_per_microbatch: size of a micro-batch, in units of `microbatch_unit`.
        dtype: type of computations, applied by autocast.
    """

    microbatch_unit = "tokens"
    continues_adapters = False  # whether adapters start from trained ones, which change the model
    weight_sync: Any  # connection to the weights that generation uses
    aux_heads: Any  # auxiliary heads that are trained beside the policy

    def __init__(
        self,
        name: str,
        module: nn.Module,
        *saveables: Saveable,
        has_adapters: bool,
        tokens_per_microbatch: int = 1 << 30,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.name = name
        self.module = module
        self.trained_module = module  # whose parameters are updated: a sharded copy has its own
        self.saveables = saveables
        self.has_adapters = has_adapters
        self.tokens_per_microbatch = tokens_per_microbatch
        self.dtype = dtype
        self.policy_version = 0  # update steps of the weights that generate
        self.max_rows = 0  # rows in the largest of the last micro-batches
        self.generation_seconds = 0.0

    def parameters(self) -> Sequence[nn.Parameter]:
        """Parameters for the optimizer, always in the same order."""
        return [p for p in self.trained_module.parameters() if p.requires_grad]

    def embeddings(self) -> Sequence[nn.Parameter]:
        """Trained parameters of embedding layers and of the layer that computes logits."""
        from transformers import PreTrainedModel  # its import takes two seconds

        modules = list(self.trained_module.modules())
        layers = [layer for layer in modules if isinstance(layer, nn.Embedding)]
        models = [x for x in modules if isinstance(x, PreTrainedModel)]
        outputs = (model.get_output_embeddings() for model in models)
        layers += [layer for layer in outputs if isinstance(layer, nn.Module)]
        parameters = {id(p): p for layer in layers for p in layer.parameters() if p.requires_grad}
        return list(parameters.values())

    @property
    def prompt_limit(self) -> PromptLimit | None:
        """The largest prompt; None if there is no limit."""
        return None

    @property
    def is_sharded(self) -> bool:
        """Whether ranks divide the weights, so that they need equal numbers of backward passes."""
        return self.trained_module is not self.module

    def weights(self) -> dict[str, Tensor]:
        """All trained weights by name; those of a sharded policy are sharded."""
        return _trained(self.trained_module)

    def replicated_weights(self) -> dict[str, Tensor]:
        """All trained weights by name, as every rank has them to generate with."""
        return _trained(self.module)

    def update_unsharded_copy(self) -> None:
        """Bring the unsharded copy of sharded weights up to date; every rank calls this."""

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights that `weights` returned; raise `ConfigError` if names or shapes differ."""
        own = self.weights()
        own_shapes = {name: weight.shape for name, weight in own.items()}
        shapes = {name: weight.shape for name, weight in weights.items()}
        if different := own_shapes.items() ^ shapes.items():
            name = min(different)[0]
            raise ConfigError(f"weights: {name!r} differs from that of {self.name!r}.")
        for name, parameter in own.items():
            parameter.copy_(sharded_like(parameter, weights[name]))
        if self.is_sharded:  # its copy is whole on every rank: nothing need be gathered
            for name, parameter in self.replicated_weights().items():
                parameter.copy_(weights[name])

    def merged_model(self) -> Any:
        """The model; with adapters, a copy into which they are merged."""
        module: Any = self.module
        return copy.deepcopy(module).merge_and_unload() if self.has_adapters else module

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write the model as transformers loads it, with adapters merged or separate."""
        module: Any = self.merged_model() if merge else self.module
        with quiet_transformers():
            for saveable in (module, *self.saveables):
                saveable.save_pretrained(folder)
        if heads := self.aux_heads:
            heads.export(folder, merge=merge)

    def sync_weights(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Generate from now on with a snapshot of `weight_sync` and label it with its version."""
        self.weight_sync.load(weights)
        self.policy_version = version

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """Text of each item of each response: "", unless a policy generates text."""
        return [[""] * len(response.items) for _, response in rollout.turns]

    def halve_microbatch(self) -> str:
        """Halve the micro-batch; return a message, or "" if it holds a single row already."""
        self.tokens_per_microbatch //= 2
        size = f"{self.tokens_per_microbatch} {self.microbatch_unit}"
        message = f"Out of memory: micro-batches hold {size} from now on."
        return message if self.max_rows > 1 else ""

    def release_memory(self) -> None:
        """Return memory that torch holds without using it: it may have the wrong block sizes."""
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    @property
    def device(self) -> torch.device:
        """Where the module lives."""
        return next(self.module.parameters()).device

    def make_batcher(
        self, engine: BatchHandler[RequestT, ReplyT]
    ) -> CountingBatcher[RequestT, ReplyT]:
        """Return a batcher for an engine that counts tokens and records `generation_seconds`."""

        def timed(requests: Sequence[RequestT]) -> Iterator[tuple[int, ReplyT]]:
            seconds_before = self.generation_seconds
            start = time.perf_counter()
            with self.weight_sync.context(), self.autocast():
                for reply in engine(requests):
                    self.generation_seconds = seconds_before + time.perf_counter() - start
                    yield reply

        return CountingBatcher(timed)

    def autocast(self) -> AbstractContextManager[Any]:
        """Context manager in which the model computes in `dtype`."""
        is_full = self.dtype in FULL_PRECISION
        return nullcontext() if is_full else torch.autocast(self.device.type, self.dtype)

    def reused_casts(self) -> AbstractContextManager[Any]:
        """Context manager in which weights are cast once for several uses of `autocast`.

        Only without gradients: with them, those of all uses would be added in the smaller dtype.
        """
        is_reused = self.dtype not in FULL_PRECISION and not torch.is_grad_enabled()
        # torch keeps the casts until the outermost context ends, also if that one casts nothing
        is_enabled = torch.is_autocast_enabled(self.device.type)
        return (
            torch.autocast(self.device.type, self.dtype, is_enabled) if is_reused else nullcontext()
        )


def _trained(module: nn.Module) -> dict[str, Tensor]:
    return {n: p.detach() for n, p in module.named_parameters() if p.requires_grad}
