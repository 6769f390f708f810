"""Detection of models that the native Llama backend can execute, by comparing hidden states."""

from dataclasses import replace

import torch
from transformers import PreTrainedModel

from grupo.kernels import native
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.kernels.llama.structure import activation_dtype, is_llama
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.attention_recorder import AttentionRecorder
from grupo.kernels.packing.positions import RowPositions
from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.kernels.trial_rows import trial_rows

TOLERANCE = 1e-4  # relative error of hidden states
BFLOAT16_TOLERANCE = 5e-2  # above weights in bfloat16, of which modules round every result


def native_backend(
    model: PreTrainedModel, positions: RowPositions | None = None
) -> NativeLlamaBackend | None:
    """The native backend if it reproduces the model's hidden states, otherwise None.

    Args:
        model: the model.
        positions: positions of tokens. Default: their indices in their rows.
    """
    if model.device.type != "cpu" or not is_llama(model):
        return None
    dtype = activation_dtype(model)
    return _verified_backend(model, dtype, positions) if dtype else None


@torch.no_grad()
def _verified_backend(
    model: PreTrainedModel, dtype: torch.dtype, positions: RowPositions | None
) -> NativeLlamaBackend | None:
    """Compares hidden states at the first and the last positions of the context.

    Some models scale late positions differently.
    """
    library = native.library(dtype)
    if not library:
        return None
    rows = trial_rows(model)
    count, width = rows.shape
    packed = pack(rows, torch.full((count,), width), min_saved=1)
    end = getattr(model.config.get_text_config(), "max_position_embeddings", 0)
    shift = (packed.position > 1) * max(0, end - width)
    packed = replace(packed, position=packed.position + shift)
    recorder = AttentionRecorder(TreeAttention(packed))
    expected = hf_attention.forward_packed(model, packed.token, packed.position, recorder)
    if any(config.softcap for config in recorder.configs.values()):
        return None
    backend = NativeLlamaBackend(model, library, dtype, recorder.configs, positions)
    stores_bfloat16 = backend.weights.stores_bfloat16
    if stores_bfloat16 and not backend.weights.multiplies_bfloat16:
        return None
    hidden = backend.evaluate(packed, torch.arange(len(packed.token))).values
    tolerance = BFLOAT16_TOLERANCE if stores_bfloat16 else TOLERANCE
    return backend if (expected - hidden).norm() < tolerance * expected.norm() else None
