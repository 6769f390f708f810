"""Which models have a lean body: those for whom, tried out, it says what their modules say."""

import ctypes
from dataclasses import replace

import torch
from torch import Tensor
from transformers import PreTrainedModel

from grupo.kernels import native
from grupo.kernels.llama.backend import Lean
from grupo.kernels.llama.layers import of_llama
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.block_attention import How
from grupo.kernels.packing.hf_attention import Layout
from grupo.kernels.packing.prefix_trie import line
from grupo.kernels.packing.tree_attention import Tree

TRIED = torch.tensor([[0, 1, 2, 3, 1], [0, 1, 2, 1, 0], [0, 1, 1, 2, 1]])


def lean(model: PreTrainedModel) -> Lean | None:
    """The model's body in C, if it is of that family and, tried out, says the same."""
    if model.device.type != "cpu" or not of_llama(model):
        return None
    c = native.library(next(model.parameters()).dtype)
    return _tried(model, c) if c else None


@torch.no_grad()
def _tried(model: PreTrainedModel, c: ctypes.CDLL) -> Lean | None:
    """At the first places and at the last, which some models see otherwise."""
    length = torch.full((len(TRIED),), TRIED.shape[1])
    end = getattr(model.config.get_text_config(), "max_position_embeddings", 0)
    packed = line(TRIED, length, least=1)
    late = (packed.position > 1) * max(0, end - TRIED.shape[1])
    packed = replace(packed, position=packed.position + late)
    watching = _Watching(Tree(packed))
    own = hf_attention.read(model, packed.token, packed.position, watching)
    if any(how.softcap for how in watching.hows.values()):
        return None
    body = Lean(model, c, watching.hows)
    every = torch.arange(len(packed.token))
    same = (own - body.again(packed, every)[0]).norm() < 1e-4 * own.norm()
    return body if same else None


class _Watching:
    """Notes how layers attend."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.hows = layout, dict[int, How]()

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, how: How) -> Tensor:
        self.hows[layer] = how
        return self.layout.attend(layer, q, k, v, how)
