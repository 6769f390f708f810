"""From a model's body to its logits."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.core.errors import ConfigError


@dataclass(frozen=True)
class LMHead:
    """From the body's last hidden states to logits, as the model's own forward does."""

    output: nn.Module
    scale: float = 1.0
    softcap: float = 0.0  # 0: none

    @property
    def weight(self) -> Tensor | None:
        """Its weights (V, h), if it is nothing but the product with these."""
        one: Any = self.output
        plain = type(one) is nn.Linear and one.bias is None and self.scale == 1
        return one.weight if plain and not self.softcap else None

    def __call__(self, hidden: Tensor) -> Tensor:
        logits = self.output(hidden)
        logits = logits if self.scale == 1 else logits * self.scale
        return self.softcap * torch.tanh(logits / self.softcap) if self.softcap else logits


def lm_head_of(model: PreTrainedModel) -> LMHead:
    """The model's head; refuses a model whose own logits, tried out, are something else."""
    if model.base_model is model:
        raise ConfigError(
            f"model: {type(model).__name__} has no body that can be read without its head."
        )
    output: Any = model.get_output_embeddings()
    config = model.config.get_text_config()
    times = getattr(config, "logit_scale", None) or 1.0
    over = getattr(config, "logits_scaling", None) or 1.0
    head = LMHead(output, times / over, getattr(config, "final_logit_softcapping", None) or 0.0)
    _check_head(model, head)
    return head


@torch.no_grad()
def _check_head(model: PreTrainedModel, lm_head: LMHead) -> None:
    texts = torch.tensor([[0, 1, 0, 1], [0, 1, 0, 0]], device=model.device)
    own = model(texts, use_cache=False).logits.float()
    ours = lm_head(model.base_model(texts, use_cache=False).last_hidden_state).float()
    name = type(model).__name__
    if not torch.allclose(own[0, :-1], own[1, :-1], rtol=1e-2, atol=1e-2):
        raise ConfigError(f"model: {name} is not causal, for what comes later changes its logits.")
    if not torch.allclose(own, ours, rtol=1e-3, atol=1e-3):
        raise ConfigError(
            f"model: the logits of {name} are not its head of its last hidden states."
        )
