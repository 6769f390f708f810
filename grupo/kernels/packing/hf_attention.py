"""Custom attention for transformers models: registered by name, computed by a layout object.

Models pass queries, keys and values to an attention function that their configuration names, with
the keyword arguments of the forward call. This one takes the keyword argument `layout`, which
knows which tokens attend to which.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from grupo.kernels.float32_precision import full_float32
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.positions import position_ids_of
from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.packing.tree_attention import TreeAttention

ATTENTION_NAME = "grupo"
TOLERANCE = {torch.bfloat16: 5e-2}  # relative error of hidden states; others: 1e-3
# layer types that are fully described by an AttentionConfig
SUPPORTED_LAYER_TYPES = {"full_attention", "sliding_attention"}


class AttentionLayout(Protocol):
    """The attention pattern among packed tokens."""

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> Tensor:
        """Outputs (1, M, H, d) of queries (1, H, M, d), and keys and values (1, K, M, d)."""
        ...


class AttentionWithLSE(Protocol):
    """Attention that also returns the log-sum-exp of the scores, without a gradient."""

    def attend_with_lse(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> tuple[Tensor, Tensor]:
        """Outputs (M, H, d) and log-sum-exp (M, H) of queries, keys and values (M, ..., d)."""
        ...


def _attention(
    module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: None, **kwargs: Any
) -> tuple[Tensor, None]:
    config = AttentionConfig(
        kwargs.get("scaling") or q.shape[-1] ** -0.5,
        kwargs.get("sliding_window") or float("inf"),
        kwargs.get("softcap") or 0.0,
    )
    # rotation by float32 angles may have widened queries and keys
    q = q.to(v.dtype)
    k = k.to(v.dtype)
    return kwargs["layout"].attend(module.layer_idx, q, k, v, config), None


def forward_packed(
    model: PreTrainedModel, token: Tensor, position: Tensor, layout: AttentionLayout
) -> Tensor:
    """Last hidden states (M, h) of packed tokens; `position` is a number for each of them."""
    kwargs: Any = {"layout": layout, "use_cache": False}
    position_ids = position_ids_of(model, position)
    out = text_decoder(model)(input_ids=token[None], position_ids=position_ids, **kwargs)
    return out.last_hidden_state[0]


def text_decoder(model: PreTrainedModel) -> Any:
    """The part of a model that turns tokens into hidden states: without towers for images."""
    base: Any = model.base_model
    return getattr(base, "language_model", None) or getattr(base, "text_model", None) or base


def switch_to_packed_attention(model: PreTrainedModel) -> None:
    """Makes the model compute attention with the `layout` of each forward call."""
    AttentionInterface.register(ATTENTION_NAME, _attention)
    text_decoder(model).set_attn_implementation(ATTENTION_NAME)


@torch.no_grad()
@full_float32()
def try_packed_attention(model: PreTrainedModel) -> bool:
    """Switches the model to packed attention if its hidden states stay the same.

    Returns whether it was switched.
    """
    config = model.config.get_text_config()
    before = config._attn_implementation or "eager"
    token = torch.tensor([[0, 1, 2, 3, 1], [0, 1, 2, 1, 0], [0, 1, 1, 2, 1]], device=model.device)
    expected = model.base_model(input_ids=token, use_cache=False).last_hidden_state
    if set(getattr(config, "layer_types", None) or SUPPORTED_LAYER_TYPES) - SUPPORTED_LAYER_TYPES:
        return False
    try:
        switch_to_packed_attention(model)
        packed = pack(token, torch.full((3,), 5), min_saved=1).to(model.device)
        hidden = forward_packed(model, packed.token, packed.position, TreeAttention(packed))
        error = (expected - hidden[packed.token_index]).float().norm() / expected.float().norm()
        same = bool(error < TOLERANCE.get(expected.dtype, 1e-3))
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError):
        same = False
    if not same:
        text_decoder(model).set_attn_implementation(before)
    return same
