"""Tensors as a line of text, for JSON values and dictionary keys, and back."""

from base64 import b64decode, b64encode

import numpy as np
import torch
from torch import Tensor


def encode_tensor(x: Tensor) -> str:
    """The dtype, shape and bytes of a tensor.

    >>> encode_tensor(torch.tensor([[0, 255]], dtype=torch.uint8))
    'uint8:1x2:AP8='
    """
    array = x.detach().cpu().contiguous().numpy()
    shape = "x".join(map(str, array.shape))
    return f"{array.dtype}:{shape}:{b64encode(array.tobytes()).decode()}"


def decode_tensor(line: str) -> Tensor:
    """The tensor that `encode_tensor` wrote, exactly.

    >>> decode_tensor(encode_tensor(torch.tensor([0.5, -1.0])))
    tensor([ 0.5000, -1.0000])
    """
    dtype, shape, data = line.split(":")
    array = np.frombuffer(b64decode(data), dtype=dtype)
    return torch.from_numpy(array.reshape([int(n) for n in shape.split("x")]).copy())
