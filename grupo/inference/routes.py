"""Routes, the experts that routers choose for the tokens of a context, as text in replies.

A context of n tokens has the routes of its first n - 1 tokens: the last one was sampled, and no
model has read it yet.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from grupo.storage.tensor_text import decode_tensor, encode_tensor

MAX_SMALL = 256  # numbers below need one byte


def encode_routes(routes: Int[Tensor, "n layers*k"]) -> str:
    """The routes as text.

    >>> encode_routes(torch.tensor([[0, 7], [3, 1]], dtype=torch.int16))
    'uint8:2x2:AAcDAQ=='
    """
    is_small = not routes.numel() or int(routes.max()) < MAX_SMALL
    return encode_tensor(routes.to(torch.uint8 if is_small else torch.int16))


def decode_routes(line: str) -> Int[Tensor, "n layers*k"]:
    """The routes that `encode_routes` wrote."""
    return decode_tensor(line).to(torch.int16)


def routes_after(line: str, count: int) -> str:
    """The routes without those of the first tokens.

    >>> routes_after(encode_routes(torch.tensor([[0, 7], [3, 1]])), 1)
    'uint8:1x2:AwE='
    """
    return encode_routes(decode_routes(line)[count:]) if line else ""


def continued_routes(begun: str, line: str) -> str:
    """The routes `line` of a context, with those that its beginning had when it was generated.

    >>> begun, line = (encode_routes(torch.tensor(x)) for x in ([[5]], [[1], [2]]))
    >>> decode_routes(continued_routes(begun, line)).tolist()
    [[5], [2]]
    """
    if not begun or not line:
        return line
    known = decode_routes(begun)
    return encode_routes(torch.cat([known, decode_routes(line)[len(known) :]]))
