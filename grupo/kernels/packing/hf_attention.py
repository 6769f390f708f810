"""Custom attention for transformers models: registered by name, computed by a layout object.

Models pass queries, keys and values to an attention function that their configuration names, with
the keyword arguments of the forward call. This one takes the keyword argument `layout`, which
knows which tokens attend to which.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from grupo.kernels.exactness import ExpectedStates
from grupo.kernels.float32_precision import full_float32
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.positions import position_ids_of
from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.packing.sinks import Sinks
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.kernels.routing import MODEL_ERRORS, RouterPass, routing_argument
from grupo.kernels.trial_rows import trial_rows

ATTENTION_NAME = "grupo"
# layer types that are fully described by an AttentionConfig
SUPPORTED_LAYER_TYPES = {"full_attention", "sliding_attention"}


class AttentionLayout(Protocol):
    """The attention pattern among packed tokens."""

    def attend(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        config: AttentionConfig,
        sinks: Sinks | None = None,
    ) -> Tensor:
        """Outputs (1, M, H, d) of queries (1, H, M, d), and keys and values (1, K, M, d).

        `sinks`: a score of each head that takes part in its softmax without a value.
        """
        ...


class AttentionWithLSE(Protocol):
    """Attention that also returns the log-sum-exp of the scores, without a gradient."""

    def attend_with_lse(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> tuple[Tensor, Tensor]:
        """Outputs (M, H, d) and log-sum-exp (M, H) of queries, keys and values (M, ..., d)."""
        ...


def _attention(
    module: nn.Module, q: Tensor, k: Tensor, v: Tensor, attention_mask: None, **kwargs: Any
) -> tuple[Tensor, None]:
    config = AttentionConfig(
        kwargs.get("scaling") or q.shape[-1] ** -0.5,
        kwargs.get("sliding_window") or float("inf"),
        kwargs.get("softcap") or 0.0,
    )
    # rotation by float32 angles may have widened queries and keys
    q = q.to(v.dtype)
    k = k.to(v.dtype)
    sinks = kwargs.get("s_aux")
    return kwargs["layout"].attend(module.layer_idx, q, k, v, config, sinks), None


def forward_packed(
    model: PreTrainedModel,
    token: Tensor,
    position: Tensor,
    layout: AttentionLayout,
    routing: RouterPass | None = None,
) -> Tensor:
    """Last hidden states (M, h) of packed tokens; `position` is a number for each of them."""
    kwargs: Any = {"layout": layout, "use_cache": False, **routing_argument(routing)}
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


class PackedAttentionError(Exception):
    """A model keeps its own attention. The message continues a sentence about packed attention."""


@torch.no_grad()
@full_float32()
def use_packed_attention(model: PreTrainedModel) -> None:
    """Switches the model to packed attention if its hidden states stay as exact as they are.

    Raises:
        PackedAttentionError: the model keeps its own attention.
    """
    config = model.config.get_text_config()
    others = set(getattr(config, "layer_types", None) or ()) - SUPPORTED_LAYER_TYPES
    if others:
        raise PackedAttentionError(f"does not compute layers of type {sorted(others)[0]!r}")
    before = config._attn_implementation or "eager"
    rows = trial_rows(model)
    expected = ExpectedStates.of(
        lambda: model.base_model(input_ids=rows, use_cache=False).last_hidden_state
    )
    try:
        switch_to_packed_attention(model)
        problem = expected.deviation(_packed_states(model, rows))
    except MODEL_ERRORS as error:
        problem = describe_failure(error)
    if problem:
        text_decoder(model).set_attn_implementation(before)
        raise PackedAttentionError(problem)


def describe_failure(error: Exception) -> str:
    """An error of a model whose attention is packed, as a `PackedAttentionError` states it."""
    first_line = next(iter(str(error).strip().splitlines()), "")
    return f"raises {type(error).__name__}: {first_line}"


def _packed_states(model: PreTrainedModel, rows: Tensor) -> Tensor:
    """Last hidden states (N, L, h) of rows of equal length."""
    packed = pack(rows, torch.full((len(rows),), rows.shape[1]), min_saved=1).to(model.device)
    hidden = forward_packed(model, packed.token, packed.position, TreeAttention(packed))
    return hidden[packed.token_index]
