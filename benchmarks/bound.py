"""The tokens a second that the matrix products of this machine allow.

    python -m benchmarks.bound

A new token is multiplied with every weight of the layers and of the LM head once. Products of large
matrices with as many multiplications therefore bound the speed of generation. `benchmarks.sampling`
measures the bound beside the engines, in the type in which grupo computes: float32 on a processor
that only emulates bfloat16.
"""

import math
import time
from collections.abc import Callable

import torch

from benchmarks.workloads import SMOLLM2, THREADS

SIZE = 2048  # rows and columns of the second factor
MAX_ROWS = 4096  # of the first factor
SECONDS = 2.0  # of a measurement


def matrix_products(multiplications: int, dtype: torch.dtype) -> Callable[[], None]:
    """Return a function that computes products with that number of multiplications."""
    total_rows = multiplications / SIZE**2
    products = math.ceil(total_rows / MAX_ROWS)
    rows = torch.randn(round(total_rows / products), SIZE).to(dtype)
    weight = torch.randn(SIZE, SIZE).to(dtype)

    def multiply() -> None:
        for _ in range(products):
            torch.mm(rows, weight)

    return multiply


def product_rate(dtype: torch.dtype) -> float:
    """Return the floating-point operations a second in products of large matrices."""
    multiplications = MAX_ROWS // 8 * SIZE**2
    multiply = matrix_products(multiplications, dtype)
    multiply()  # warms up
    count, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < SECONDS:
        multiply()
        count += 1
    return 2 * count * multiplications / seconds


def main() -> None:
    """Print the rate of each type, and the tokens a second of a model of SmolLM2's shape."""
    torch.set_num_threads(THREADS)
    weights = SMOLLM2.product_weights
    for dtype in (torch.float32, torch.bfloat16):
        rate = product_rate(dtype)
        speed = rate / (2 * weights)
        print(f"{dtype}: {rate / 1e9:.1f} GFLOP/s, {speed:,.0f} tokens/s of {weights:,} weights")


if __name__ == "__main__":
    main()
