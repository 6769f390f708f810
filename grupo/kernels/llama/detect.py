"""Which models have a lean body: those for whom, tried out, it says what their modules say."""

import ctypes
from dataclasses import replace

import torch
from torch import Tensor
from transformers import PreTrainedModel

from grupo.kernels import native
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.kernels.llama.layers import is_llama
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.hf_attention import AttentionLayout
from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.packing.tree_attention import TreeAttention

TRIAL_TOKENS = torch.tensor([[0, 1, 2, 3, 1], [0, 1, 2, 1, 0], [0, 1, 1, 2, 1]])


def native_backend(model: PreTrainedModel) -> NativeLlamaBackend | None:
    """The model's body in C, if it is of that family and, tried out, says the same."""
    if model.device.type != "cpu" or not is_llama(model):
        return None
    c = native.library(next(model.parameters()).dtype)
    return _verified_backend(model, c) if c else None


@torch.no_grad()
def _verified_backend(model: PreTrainedModel, library: ctypes.CDLL) -> NativeLlamaBackend | None:
    """At the first places and at the last, which some models see otherwise."""
    length = torch.full((len(TRIAL_TOKENS),), TRIAL_TOKENS.shape[1])
    end = getattr(model.config.get_text_config(), "max_position_embeddings", 0)
    packed = pack(TRIAL_TOKENS, length, min_saved=1)
    late = (packed.position > 1) * max(0, end - TRIAL_TOKENS.shape[1])
    packed = replace(packed, position=packed.position + late)
    watching = _AttentionRecorder(TreeAttention(packed))
    own = hf_attention.forward_packed(model, packed.token, packed.position, watching)
    if any(how.softcap for how in watching.configs.values()):
        return None
    body = NativeLlamaBackend(model, library, watching.configs)
    every = torch.arange(len(packed.token))
    same = (own - body.forward_with_grad(packed, every)[0]).norm() < 1e-4 * own.norm()
    return body if same else None


class _AttentionRecorder:
    """Notes how layers attend."""

    def __init__(self, layout: AttentionLayout) -> None:
        self.layout, self.configs = layout, dict[int, AttentionConfig]()

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> Tensor:
        self.configs[layer] = config
        return self.layout.attend(layer, q, k, v, config)
