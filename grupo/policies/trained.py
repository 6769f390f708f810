"""What training changes of a model: its weights, taken out, put back, written for others."""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from grupo.errors import Refused


class Trained:
    """A model, adapters on it or none, of which some parameters are trained."""

    def __init__(
        self, name: str, module: nn.Module, tokenizer: PreTrainedTokenizerBase, *, adapted: bool
    ) -> None:
        self.name, self.module, self.tokenizer, self.adapted = name, module, tokenizer, adapted

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
            raise Refused(f"weights: {min(other)[0]!r} is not as in {self.name!r}.")
        for name, parameter in own.items():
            parameter.copy_(weights[name])

    def merged(self) -> Any:
        """The model with what adapters change; a copy of it where there are any."""
        module: Any = self.module
        return copy.deepcopy(module).merge_and_unload() if self.adapted else module

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write a folder that transformers loads; adapters merged into the model, or apart."""
        module: Any = self.merged() if merge else self.module
        module.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
