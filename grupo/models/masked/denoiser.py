"""A bidirectional language model as a denoiser: predictions of masked tokens."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.inference.sampling_params import Sampling
from grupo.kernels.hidden_states import HiddenStates
from grupo.models.masked.logp_estimators import MaskedViews
from grupo.models.token_statistics import TokenDistributions
from grupo.util.errors import ConfigError


@dataclass(frozen=True)
class Denoiser:
    """A bidirectional model, and its mask token, which it never predicts."""

    model: PreTrainedModel
    mask_token: int

    def __call__(self, token: Int[Tensor, "V L"], length: Int[Tensor, "V"]) -> tuple[Tensor, ...]:
        """Logits (V, L, vocabulary) and last hidden states (V, L, H)."""
        token = token.to(self.model.device)
        length = length.to(self.model.device)
        mask = torch.arange(token.shape[1], device=token.device) < length[:, None]
        output = self.model(input_ids=token, attention_mask=mask.long(), output_hidden_states=True)
        mask_token = torch.tensor([self.mask_token], device=token.device)
        return output.logits.index_fill(-1, mask_token, -torch.inf), output.hidden_states[-1]

    def forward_views(
        self, views: MaskedViews, max_tokens: int
    ) -> tuple[Float[Tensor, "_ V"], Float[Tensor, "_ H"]]:
        """Logits and hidden states of every action's token in each of its views.

        The views of an action are adjacent. Texts are evaluated in batches of `max_tokens`; with
        several batches, each is recomputed in the backward pass.
        """
        width = int(views.length.max()) if len(views.length) else 0
        view = views.view.flatten()
        position = views.position.repeat_interleave(views.view.shape[1])
        order = view.argsort(stable=True)
        size = self.views_per_batch(views, max_tokens)
        recompute = len(views.token) > size and torch.is_grad_enabled()
        outputs = []
        for first in range(0, len(views.token), size):
            texts = slice(first, first + size)
            here = order[(view[order] >= first) & (view[order] < first + size)]
            inputs = (
                views.token[texts, :width],
                views.length[texts],
                view[here] - first,
                position[here],
            )
            if recompute:
                outputs.append(checkpoint(self._select_positions, *inputs, use_reentrant=False))
            else:
                outputs.append(self._select_positions(*inputs))
        inverse = order.argsort()
        logits, states = (torch.cat(parts)[inverse] for parts in zip(*outputs, strict=True))
        return logits, states

    def distributions(
        self, views: MaskedViews, token: Int[Tensor, "M"], sampling: Sampling, max_tokens: int
    ) -> tuple[TokenDistributions, Float[Tensor, "_ H"]]:
        """Token distributions of every view, and the hidden states that they come from."""
        logits, states = self.forward_views(views, max_tokens)
        tokens = token.repeat_interleave(views.view.shape[1]).to(logits.device)
        distributions = TokenDistributions(
            HiddenStates(logits), tokens, torch.nn.Identity(), sampling
        )
        return distributions, states

    def views_per_batch(self, views: MaskedViews, max_tokens: int) -> int:
        """Number of texts that are evaluated at once."""
        return max(1, max_tokens // max(1, int(views.length.max()) if len(views.length) else 1))

    def _select_positions(
        self, token: Tensor, length: Tensor, view: Tensor, position: Tensor
    ) -> tuple[Tensor, ...]:
        logits, states = self(token, length)
        return logits[view, position], states[view, position]


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
    """The token that ends an answer (the separator, if there is no end token), and the mask."""
    end = tokenizer.eos_token_id
    mask = tokenizer.mask_token_id
    end = tokenizer.sep_token_id if end is None else end
    if not isinstance(mask, int) or not isinstance(end, int):
        missing = "end" if isinstance(mask, int) else "mask"
        raise ConfigError(
            f"model: the tokenizer of {tokenizer.name_or_path!r} has no {missing} token."
        )
    return end, mask
