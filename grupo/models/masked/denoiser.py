"""A bidirectional model as a denoiser: what it says of the masked places of texts."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.core.errors import ConfigError
from grupo.inference.sampling_params import Sampling
from grupo.models.masked.logp_estimators import MaskedViews
from grupo.models.token_statistics import TokenDistributions


@dataclass(frozen=True)
class Denoiser:
    """A model, and the token that it is to replace, which it never says."""

    model: PreTrainedModel
    mask_token: int

    def __call__(self, token: Int[Tensor, "V L"], length: Int[Tensor, "V"]) -> tuple[Tensor, ...]:
        """Logits (V, L, vocabulary) and last hidden states (V, L, H)."""
        token, length = token.to(self.model.device), length.to(self.model.device)
        here = torch.arange(token.shape[1], device=token.device) < length[:, None]
        said = self.model(input_ids=token, attention_mask=here.long(), output_hidden_states=True)
        mask = torch.tensor([self.mask_token], device=token.device)
        return said.logits.index_fill(-1, mask, -torch.inf), said.hidden_states[-1]

    def forward_views(
        self, views: MaskedViews, max_tokens: int
    ) -> tuple[Float[Tensor, "_ V"], Float[Tensor, "_ H"]]:
        """Logits and states of every look, an action's side by side.

        Texts are read so many at a time that `budget` tokens are; of more than one such part each
        is read again for its gradient.
        """
        width = int(views.length.max()) if len(views.length) else 0
        view, place = views.view.flatten(), views.position.repeat_interleave(views.view.shape[1])
        order, size = view.argsort(stable=True), self.views_per_batch(views, max_tokens)
        again = len(views.token) > size and torch.is_grad_enabled()
        said = []
        for first in range(0, len(views.token), size):
            texts = slice(first, first + size)
            here = order[(view[order] >= first) & (view[order] < first + size)]
            given = views.token[texts, :width], views.length[texts], view[here] - first, place[here]
            run = (
                (lambda *x: checkpoint(self._select_positions, *x, use_reentrant=False))
                if again
                else self._select_positions
            )
            said.append(run(*given))
        back = order.argsort()
        logits, states = (torch.cat(parts)[back] for parts in zip(*said, strict=True))
        return logits, states

    def distributions(
        self, views: MaskedViews, token: Int[Tensor, "M"], sampling: Sampling, max_tokens: int
    ) -> tuple[TokenDistributions, Float[Tensor, "_ H"]]:
        """What every look says of its action's token, and the states it says so from."""
        logits, states = self.forward_views(views, max_tokens)
        each = token.repeat_interleave(views.view.shape[1]).to(logits.device)
        return TokenDistributions(logits, each, torch.nn.Identity(), sampling), states

    def views_per_batch(self, views: MaskedViews, max_tokens: int) -> int:
        """How many texts are read at a time."""
        return max(1, max_tokens // max(1, int(views.length.max()) if len(views.length) else 1))

    def _select_positions(
        self, token: Tensor, length: Tensor, view: Tensor, position: Tensor
    ) -> tuple[Tensor, ...]:
        logits, states = self(token, length)
        return logits[view, position], states[view, position]


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
    """The token that ends an answer, a separator where there is no other, and the mask."""
    last, mask = tokenizer.eos_token_id, tokenizer.mask_token_id
    last = tokenizer.sep_token_id if last is None else last
    if not isinstance(mask, int) or not isinstance(last, int):
        what = "end" if isinstance(mask, int) else "mask"
        raise ConfigError(
            f"model: the tokenizer of {tokenizer.name_or_path!r} has no {what} token."
        )
    return last, mask
