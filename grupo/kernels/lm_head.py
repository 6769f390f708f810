"""The language-model head: from last hidden states to logits."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.kernels.float32_precision import full_float32
from grupo.kernels.trial_rows import ordinary_tokens
from grupo.util.errors import ConfigError

LogitsHead = Callable[[Float[Tensor, "m H"]], Float[Tensor, "m V"]]  # for example an `LMHead`


@dataclass(frozen=True)
class LMHead:
    """Computes logits from the base model's last hidden states, as the model's own forward does.

    Args:
        output: the output embedding.
        scale: factor of the logits.
        softcap: bound c of the logits, c * tanh(logits / c); 0 applies none.
    """

    output: nn.Module
    scale: float = 1.0
    softcap: float = 0.0

    @property
    def weight(self) -> Tensor | None:
        """The weight (V, h) if the head is a plain product with it, otherwise None."""
        output: Any = self.output
        plain = type(output) is nn.Linear and output.bias is None and self.scale == 1
        return output.weight if plain and not self.softcap else None

    def of_model(self, model: PreTrainedModel) -> "LMHead":
        """The head of a copy of the model."""
        output: Any = model.get_output_embeddings()
        return replace(self, output=output)

    def __call__(self, hidden: Tensor) -> Tensor:
        logits = self.output(hidden)
        logits = logits if self.scale == 1 else logits * self.scale
        return self.softcap * torch.tanh(logits / self.softcap) if self.softcap else logits


@dataclass(frozen=True)
class AutocastHead:
    """A head that is computed in another type than that of its weights.

    Args:
        head: the head.
        device_type: device of its weights.
        dtype: type of the computation.
    """

    head: LMHead
    device_type: str
    dtype: torch.dtype

    def __call__(self, hidden: Tensor) -> Tensor:
        with torch.autocast(self.device_type, self.dtype):
            return self.head(hidden)


def lm_head_of(model: PreTrainedModel) -> LMHead:
    """The head of a model, checked against the model's own logits.

    Raises:
        ConfigError: the model has no base model, is not causal, or computes other logits.
    """
    if model.base_model is model:
        raise ConfigError(
            f"model: {type(model).__name__} has no base model that runs without the LM head."
        )
    output: Any = model.get_output_embeddings()
    config = model.config.get_text_config()
    multiplier = getattr(config, "logit_scale", None) or 1.0
    divisor = getattr(config, "logits_scaling", None) or 1.0
    softcap = getattr(config, "final_logit_softcapping", None) or 0.0
    lm_head = LMHead(output, multiplier / divisor, softcap)
    _check_head(model, lm_head)
    return lm_head


@torch.no_grad()
@full_float32()
def _check_head(model: PreTrainedModel, lm_head: LMHead) -> None:
    # two rows that differ in their last token: a causal model's earlier logits are equal
    a, b, *_ = ordinary_tokens(model.config)
    token = torch.tensor([[a, b, a, b], [a, b, a, a]], device=model.device)
    expected = model(token, use_cache=False).logits.float()
    hidden = model.base_model(token, use_cache=False).last_hidden_state
    logits = lm_head(hidden).float()
    name = type(model).__name__
    if not torch.allclose(expected[0, :-1], expected[1, :-1], rtol=1e-2, atol=1e-2):
        raise ConfigError(f"model: {name} is not causal: later tokens change its logits.")
    if not torch.allclose(expected, logits, rtol=1e-3, atol=1e-3):
        raise ConfigError(
            f"model: the logits of {name} are not its LM head applied to its last hidden states."
        )
