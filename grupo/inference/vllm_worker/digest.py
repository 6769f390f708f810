"""Checksums of weights."""

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch

HASHED_BYTES = 1 << 24  # of a tensor, hashed by one thread
HASH_THREADS = min(8, os.cpu_count() or 1)
Weights = Iterator[tuple[str, torch.Tensor]]


class WeightDigest:
    """Checksum of tensors in the order in which they are added, computed by several threads.

    BLAKE2b of a line with name, dtype and shape of each tensor, each followed by the BLAKE2b of
    each part of `HASHED_BYTES` of its bytes.

    Args:
        header: text that the checksum covers besides.
    """

    def __init__(self, header: str = "") -> None:
        self.pool = ThreadPoolExecutor(HASH_THREADS, "checksum")
        self.digest = hashlib.blake2b(f"{header}\n".encode() if header else b"", digest_size=16)
        self.parts: list[bytes | Future[bytes]] = []
        self.num_taken = 0  # parts that are hashed already

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Add the name, dtype, shape and bytes of a contiguous tensor."""
        kind = str(tensor.dtype).removeprefix("torch.")
        self.parts.append(f"{name} {kind} {list(tensor.shape)}\n".encode())
        if tensor.numel():
            for part in tensor.cpu().reshape(-1).view(torch.uint8).split(HASHED_BYTES):
                self.parts.append(self.pool.submit(_part_digest, part.numpy().data))
        self._take(len(self.parts) - 4 * HASH_THREADS)  # no more tensors are kept than needed

    def hexdigest(self) -> str:
        """The checksum of all tensors; none can be added afterwards."""
        self._take(len(self.parts))
        self.pool.shutdown()
        return self.digest.hexdigest()

    def _take(self, until: int) -> None:
        for i in range(self.num_taken, until):
            part = self.parts[i]
            self.digest.update(part if isinstance(part, bytes) else part.result())
            self.parts[i] = b""
        self.num_taken = max(self.num_taken, until)


def _part_digest(part: memoryview) -> bytes:
    return hashlib.blake2b(part, digest_size=16).digest()
