"""What policies have in common: a model, the weights of it that training changes, a voice."""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from grupo.core.errors import ConfigError
from grupo.core.types import Rollout
from grupo.inference.batcher import DynamicBatcher

RequestT = TypeVar("RequestT")
ReplyT = TypeVar("ReplyT")


class Saveable(Protocol):
    """What is written beside a model."""

    def save_pretrained(self, folder: Any, /) -> Any: ...


class TrainablePolicy:
    """A model, adapters on it or none, of which some parameters are trained.

    A micro-batch holds `budget` of its `unit`; what is computed is computed in `dtype`.
    """

    microbatch_unit = "tokens"
    weight_sync: Any  # with which weights it acts

    def __init__(
        self,
        name: str,
        module: nn.Module,
        *saveables: Saveable,
        has_adapters: bool,
        tokens_per_microbatch: int = 1 << 30,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.name, self.module, self.saveables, self.has_adapters = (
            name,
            module,
            saveables,
            has_adapters,
        )
        self.tokens_per_microbatch, self.dtype = tokens_per_microbatch, dtype
        self.policy_version = 0  # of the weights it speaks with
        self.max_rows = 0  # rows in one of the last micro-batches
        self.generation_seconds = 0.0  # that it has spoken

    def parameters(self) -> Sequence[nn.Parameter]:
        """What the optimizer updates."""
        return [p for p in self.module.parameters() if p.requires_grad]

    def weights(self) -> dict[str, Tensor]:
        """Everything that training changes, by name."""
        return {n: p.detach() for n, p in self.module.named_parameters() if p.requires_grad}

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take over what `weights` returned."""
        own = self.weights()
        other = {name: x.shape for name, x in own.items()}.items() ^ {
            name: x.shape for name, x in weights.items()
        }.items()
        if other:
            raise ConfigError(f"weights: {min(other)[0]!r} is not as in {self.name!r}.")
        for name, parameter in own.items():
            parameter.copy_(weights[name])

    def merged_model(self) -> Any:
        """The model with what adapters change; a copy of it where there are any."""
        module: Any = self.module
        return copy.deepcopy(module).merge_and_unload() if self.has_adapters else module

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write a folder that others load; adapters merged into the model, or apart."""
        module: Any = self.merged_model() if merge else self.module
        for saved in (module, *self.saveables):
            saved.save_pretrained(folder)

    def sync_weights(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Act with weights that were taken from `weight_sync`, of that version."""
        self.weight_sync.load(weights)
        self.policy_version = version

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """Parts that are no text, until a policy says otherwise."""
        return [[""] * len(action.items) for _, action in rollout.turns]

    def halve_microbatch(self) -> str:
        """Work in micro-batches half as large from now on, and say so; nothing if they are rows."""
        self.tokens_per_microbatch //= 2
        line = f"Memory does not suffice: micro-batches hold {self.tokens_per_microbatch} {self.microbatch_unit} from now on."
        return line if self.max_rows > 1 else ""

    def make_batcher(
        self, engine: Callable[[Sequence[RequestT]], Iterator[tuple[int, ReplyT]]]
    ) -> DynamicBatcher[RequestT, ReplyT]:
        """Requests to an engine, many at a time; it is noted how long it takes."""

        def answer(requests: Sequence[RequestT]) -> Iterator[tuple[int, ReplyT]]:
            spoken, began = self.generation_seconds, time.perf_counter()
            with self.autocast():
                for answered in engine(requests):
                    self.generation_seconds = spoken + time.perf_counter() - began
                    yield answered

        return DynamicBatcher(answer)

    def autocast(self) -> AbstractContextManager[Any]:
        """In which it computes."""
        device = next(self.module.parameters()).device.type
        return nullcontext() if self.dtype == torch.float32 else torch.autocast(device, self.dtype)
