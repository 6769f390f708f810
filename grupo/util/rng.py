"""Random streams derived from names, never from the state of a shared generator.

A stream is a 64-bit key. Its number at `position` is a pure function of both. A rollout's random
numbers therefore depend neither on the other rollouts of a batch nor on when it was sampled, and a
resumed run needs no generator state.
"""

import hashlib
import random

import torch
from jaxtyping import Float, Int
from torch import Tensor


def derive_key(key: int, *label: object) -> int:
    """A new key, in 0..2^63-1, from a key and a label.

    >>> derive_key(0, "step", 1) == derive_key(0, "step", 1) != derive_key(0, "step", 2)
    True
    """
    text = "/".join(map(str, (key, *label)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def make_rng(key: int, *label: object) -> random.Random:
    """A generator for the stream `derive_key(key, *label)`."""
    return random.Random(derive_key(key, *label))


def uniform(key: Int[Tensor, "N"], position: Int[Tensor, "N"]) -> Float[Tensor, "N"]:
    """One float64 in (0, 1) per stream and position: 53 bits of the splitmix64 finaliser."""
    x = key + position * -7046029254386353131  # 0x9E3779B97F4A7C15
    x = (x ^ _shift(x, 30)) * -4658895280553007687  # 0xBF58476D1CE4E5B9
    x = (x ^ _shift(x, 27)) * -7723592293110705685  # 0x94D049BB133111EB
    x = x ^ _shift(x, 31)
    return (_shift(x, 11).double() + 0.5) * 2.0**-53


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical right shift of 64-bit integers."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def seed_torch(key: int, *label: object) -> None:
    """Seed torch's own generators, for modules inside a model that draw from them.

    Without an accelerator only the CPU's is seeded: at each call `torch.manual_seed` would keep
    three tracebacks, for devices that may be initialised later.
    """
    accelerated = torch.accelerator.is_available()
    generators = torch if accelerated else torch.default_generator
    generators.manual_seed(derive_key(key, *label))
