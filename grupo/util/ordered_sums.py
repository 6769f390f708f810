"""Sums of numbers by index that are added in order, so that a run can be repeated on its device.

On a CPU, torch adds in order in `index_add`, and in the gradient of `index_select`. On CUDA it does
so where indices are in brackets.
"""

from jaxtyping import Float, Int
from torch import Tensor


def sum_by_index(
    values: Float[Tensor, "m"], index: Int[Tensor, "m"], size: int
) -> Float[Tensor, "s"]:
    """The sum of the values with each index, (size,).

    >>> from torch import tensor
    >>> sum_by_index(tensor([1.0, 2.0, 4.0]), tensor([0, 2, 0]), 3).tolist()
    [5.0, 0.0, 2.0]
    """
    zeros = values.new_zeros(size)
    if values.is_cuda:
        return zeros.index_put((index,), values, accumulate=True)
    return zeros.index_add(0, index, values)


def select_by_index(x: Float[Tensor, "s"], index: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """x[index]; the gradients of a number that is selected repeatedly are added in order.

    >>> from torch import tensor
    >>> select_by_index(tensor([1.0, 2.0]), tensor([1, 1, 0])).tolist()
    [2.0, 2.0, 1.0]
    """
    return x[index] if x.is_cuda else x.index_select(0, index)
