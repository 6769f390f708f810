"""Compute dtypes by the name that recipes give them."""

from typing import Literal

import torch

DtypeName = Literal["float32", "bfloat16"]
DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}
