"""Auxiliary heads of a policy: linear heads on hidden states, and learned scalars."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from jaxtyping import Float
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from grupo.core.aux_heads import AuxHead, DeepHead, ExportedHead, LearnedScalar, OwnModelHead
from grupo.util.errors import ConfigError, suggest

HEADS_FILE = "auxiliary_heads.safetensors"  # of an exported folder


def no_own_model(folder: str) -> NoReturn:
    """Raise `ConfigError`: the policy is of a kind that a head cannot have a copy of."""
    raise ConfigError(
        "method: an OwnModelHead needs a copy of the policy. Allowed with this kind of policy:"
        " LinearHead, DeepHead; a CausalLM allows all kinds."
    )


class AuxHeads(nn.Module):
    """Linear heads on hidden states, and scalar parameters, by name.

    Args:
        aux_heads: the heads to create; a linear head starts with weight 0 and its initial value
            as bias.
        hidden_size: width of the policy's hidden states.
        device: where the parameters live.
        make_model: loads the model of an `OwnModelHead` from a folder, "" for the policy's own; a
            policy that is not sampled from.
        dtype: type of the parameters and of their computations.
    """

    def __init__(
        self,
        aux_heads: Collection[AuxHead],
        hidden_size: int,
        device: torch.device,
        *,
        make_model: Callable[[str], Any] = no_own_model,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.heads = nn.ModuleDict()
        self.scalars = nn.ParameterDict()
        own = [head for head in aux_heads if isinstance(head, OwnModelHead)]
        self.models = {h.name: make_model(h.start.folder if h.start else "") for h in own}
        modules = {name: model.module for name, model in self.models.items()}
        self.model_modules = nn.ModuleDict(modules)
        deep = (h.name for h in aux_heads if isinstance(h, DeepHead | OwnModelHead))
        self.deep_names = frozenset(deep)
        for aux_head in aux_heads:
            if isinstance(aux_head, LearnedScalar):
                initial_value = torch.tensor(aux_head.initial_value, device=device, dtype=dtype)
                self.scalars[aux_head.name] = nn.Parameter(initial_value)
            else:
                linear = nn.Linear(hidden_size, 1, device=device, dtype=dtype)
                nn.init.zeros_(linear.weight)
                nn.init.constant_(linear.bias, aux_head.initial_value)
                self.heads[aux_head.name] = linear
        for head in own:
            if head.start:
                load_exported_head(self.heads[head.name], head.start)

    @property
    def names(self) -> frozenset[str]:
        """Names of all heads and scalars."""
        return frozenset(self.heads) | frozenset(self.scalars)

    def predict(self, name: str, hidden: Float[Tensor, "m H"]) -> Float[Tensor, "m"]:
        """Value of one head for each hidden state, of its own model if it has one.

        Gradients stop at the hidden states, unless the head is deep.
        """
        if name in self.scalars:
            return self.scalars[name].expand(len(hidden))
        features = hidden if name in self.deep_names else hidden.detach()
        return self.heads[name](features.to(self.dtype))[:, 0]

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write the heads beside the exported policy whose features they read.

        A head with a model of its own is written with that model, to `folder/heads/NAME`.
        """
        names = [name for name in self.heads if name not in self.models]
        heads = {
            f"{name}.{n}": p for name in names for n, p in self.heads[name].state_dict().items()
        }
        heads |= {name: scalar.detach() for name, scalar in self.scalars.items()}
        if heads:
            save_file(heads, folder / HEADS_FILE)
        for name, model in self.models.items():
            own_folder = folder / "heads" / name
            model.export(own_folder, merge=merge)
            weights = {f"{name}.{n}": p for n, p in self.heads[name].state_dict().items()}
            save_file(weights, own_folder / HEADS_FILE)


@torch.no_grad()
def load_exported_head(linear: nn.Module, start: ExportedHead) -> None:
    """Copy the weights of a head from an exported folder.

    Raises:
        ConfigError: The folder has no such head, or one of another width.
    """
    file = Path(start.folder) / HEADS_FILE
    if not file.is_file():
        raise ConfigError(
            f"head: {start.folder!r} has no {HEADS_FILE}. Allowed: a folder that `grupo export`"
            " wrote of a run whose method trains a head."
        )
    saved = load_file(file)
    weights = {name: saved.get(f"{start.name}.{name}") for name in ("weight", "bias")}
    shapes = {name: None if w is None else w.shape for name, w in weights.items()}
    if None in shapes.values():
        names = sorted({name.partition(".")[0] for name in saved})
        raise ConfigError(f"head: {start.name!r}. {suggest(start.name, names)}")
    if shapes != {name: w.shape for name, w in linear.state_dict().items()}:
        raise ConfigError(
            f"head: {start.name!r} in {start.folder!r} is of a model with another number of"
            " features. Allowed: a head of a model like the policy's."
        )
    linear.load_state_dict(weights)


def head_parameters(aux_heads: nn.Module) -> list[nn.Parameter]:
    """The parameters of heads that are trained, always in the same order."""
    return [parameter for _, parameter in _trained(aux_heads)]


def head_weights(aux_heads: nn.Module) -> dict[str, Tensor]:
    """The trained weights of heads, by name."""
    return {name: parameter.detach() for name, parameter in _trained(aux_heads)}


@torch.no_grad()
def load_head_weights(aux_heads: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights that `head_weights` returned; raise `ConfigError` if names or shapes differ."""
    own = head_weights(aux_heads)
    shapes = {name: weight.shape for name, weight in weights.items()}
    if different := {name: weight.shape for name, weight in own.items()}.items() ^ shapes.items():
        name = min(different)[0]
        raise ConfigError(f"aux_heads: {name!r} differs from that of the method's heads.")
    for name, weight in own.items():
        weight.copy_(weights[name])


def _trained(aux_heads: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((n, p) for n, p in aux_heads.named_parameters() if p.requires_grad)
