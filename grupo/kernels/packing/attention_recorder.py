"""Records how a model calls its attention."""

from torch import Tensor

from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.hf_attention import AttentionLayout
from grupo.kernels.packing.sinks import Sinks


class AttentionRecorder:
    """Computes attention with a layout, and records the calls of each layer.

    Args:
        layout: computes the attention.
    """

    def __init__(self, layout: AttentionLayout) -> None:
        self.layout = layout
        self.configs: dict[int, AttentionConfig] = {}  # by layer
        # numbers of query heads and key heads, features of a key and of a value
        self.shapes: dict[int, tuple[int, int, int, int]] = {}
        self.has_sinks: dict[int, bool] = {}

    def attend(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        config: AttentionConfig,
        sinks: Sinks | None = None,
    ) -> Tensor:
        self.configs[layer] = config
        self.shapes[layer] = q.shape[1], k.shape[1], k.shape[3], v.shape[3]
        self.has_sinks[layer] = sinks is not None
        return self.layout.attend(layer, q, k, v, config, sinks)
