"""One attention for every family of models: transformers calls it by name, a layout works it out.

Models hand their queries, keys and values to a function that they are told the name of, and pass on
whatever they are called with. Ours is given a layout, which knows who sees whom.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.packing.tree_attention import TreeAttention

ATTENTION_NAME = "grupo"
TOLERANCE = {torch.bfloat16: 5e-2}  # how far apart the same numbers may be; 1e-3 in float32
SUPPORTED_LAYER_TYPES = {
    "full_attention",
    "sliding_attention",
}  # kinds of layers whose attention says all it does


class AttentionLayout(Protocol):
    """Who sees whom in a line of tokens."""

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> Tensor:
        """Outputs (1, M, H, d) of queries (1, H, M, d), and keys and values (1, K, M, d)."""
        ...


class AttentionWithLSE(Protocol):
    """Who sees whom, and how much there was to see; without a gradient."""

    def attend_with_lse(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> tuple[Tensor, Tensor]:
        """Outputs (M, H, d) and log-normalisers (M, H) of queries, keys and values (M, ..., d)."""
        ...


def _attention(
    module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: None, **kwargs: Any
) -> tuple[Tensor, None]:
    how = AttentionConfig(
        kwargs.get("scaling") or q.shape[-1] ** -0.5,
        kwargs.get("sliding_window") or float("inf"),
        kwargs.get("softcap") or 0.0,
    )
    # rotated by float32 angles, queries and keys may be wider than what is computed in
    return kwargs["layout"].attend(module.layer_idx, q.to(v.dtype), k.to(v.dtype), v, how), None


AttentionInterface.register(ATTENTION_NAME, _attention)


def forward_packed(
    model: PreTrainedModel, token: Tensor, position: Tensor, layout: AttentionLayout
) -> Tensor:
    """Last hidden states (M, h) of the tokens of a line."""
    told: Any = {"layout": layout, "use_cache": False}
    out = model.base_model(input_ids=token[None], position_ids=position[None], **told)
    return out.last_hidden_state[0]


@torch.no_grad()
def try_packed_attention(model: PreTrainedModel) -> bool:
    """Does the model say the same by our attention, tried out? Then it is told to use it."""
    config = model.config.get_text_config()
    before = config._attn_implementation or "eager"
    token = torch.tensor([[0, 1, 2, 3, 1], [0, 1, 2, 1, 0], [0, 1, 1, 2, 1]], device=model.device)
    own = model.base_model(input_ids=token, use_cache=False).last_hidden_state
    if set(getattr(config, "layer_types", None) or SUPPORTED_LAYER_TYPES) - SUPPORTED_LAYER_TYPES:
        return False
    try:
        model.set_attn_implementation(ATTENTION_NAME)
        packed = pack(token, torch.full((3,), 5), min_saved=1).to(model.device)
        said = forward_packed(model, packed.token, packed.position, TreeAttention(packed))
        off = (own - said[packed.token_index]).float().norm() / own.float().norm()
        same = bool(off < TOLERANCE.get(own.dtype, 1e-3))
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError):
        same = False
    if not same:
        model.set_attn_implementation(before)
    return same
