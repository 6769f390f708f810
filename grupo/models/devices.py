"""Device and compute type of a model, from their names in a recipe."""

import os

import torch

from grupo.core.dtypes import DTYPES
from grupo.util.errors import ConfigError, suggest

BFLOAT16_WARNING = (
    "This processor has no instructions for bfloat16: it computes in float32, faster."
)
# workspaces of cuBLAS with which the same product has the same bits in every stream
CUBLAS_WORKSPACES = ":4096:8"


def resolve_device(name: str) -> torch.device:
    """The device of a name; "auto" is the GPU of this rank, otherwise the CPU.

    The GPU of a rank is that of its number on the machine, `LOCAL_RANK`, otherwise the first.
    """
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    allowed = ["auto", "cpu", *(["cuda", *gpus] if gpus else [])]
    if name not in allowed:
        raise ConfigError(f"device: {name!r} is not available. {suggest(name, allowed)}")
    if not gpus or name not in ("auto", "cuda", *gpus):
        return torch.device("cpu")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", CUBLAS_WORKSPACES)
    # a launcher may show each process its own GPU only, which is then the first
    local_rank = int(os.environ.get("LOCAL_RANK") or 0) % len(gpus)
    return torch.device(name if name in gpus else gpus[local_rank])


def compute_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """Effective compute dtype: float32 where the device would only emulate `dtype`."""
    return torch.float32 if dtype_warning(dtype, device) else DTYPES[dtype]


def dtype_warning(dtype: str, device: torch.device) -> str:
    """Message for a device that would emulate `dtype`, otherwise ""."""
    return BFLOAT16_WARNING if dtype == "bfloat16" and not has_bfloat16(device) else ""


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device has instructions for bfloat16."""
    if device.type == "cuda":  # older GPUs convert each number to float32 and back
        with torch.cuda.device(device):
            return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
