"""Compute dtypes by the name that recipes give them."""

from typing import Literal

import torch

DtypeName = Literal["float32", "bfloat16", "float64"]
DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,  # to check formulas: several times slower
}
FULL_PRECISION = (torch.float32, torch.float64)  # weights have the type of the computations
