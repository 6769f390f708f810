"""Images as PNG and as data URLs."""

import zlib
from base64 import b64encode
from struct import pack

from jaxtyping import UInt8
from torch import Tensor

from grupo.storage import tensor_text


def data_url(image: str) -> str:
    """An image as a PNG in a data URL.

    Args:
        image: A uint8 tensor (3, H, W), encoded by `tensor_text.encode_tensor`.

    >>> import torch
    >>> data_url(tensor_text.encode_tensor(torch.zeros(3, 1, 1, dtype=torch.uint8)))[:30]
    'data:image/png;base64,iVBORw0K'
    """
    png = encode_png(tensor_text.decode_tensor(image))
    return f"data:image/png;base64,{b64encode(png).decode()}"


def encode_png(image: UInt8[Tensor, "3 H W"]) -> bytes:
    """A PNG of eight bits per channel, without filter. PNG specification, third edition."""
    height, width = image.shape[1:]
    lines = image.permute(1, 2, 0).reshape(height, -1).numpy()
    pixels = b"".join(b"\0" + line.tobytes() for line in lines)
    header = pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(pixels)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))
