"""Matrix products of the layers: in the weights' type, or in bfloat16 with sums in float32."""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.kernels.llama.activation_cache import ScratchBuffers


class Products(Protocol):
    """Products of activations with weights, whose results have the type of activations."""

    dtype: torch.dtype

    def operand(self, x: Tensor) -> Tensor:
        """Activations or gradients as the other methods take them."""
        ...

    def linear(
        self,
        *terms: tuple[Float[Tensor, "M n"], Float[Tensor, "m n"]],
        out: Float[Tensor, "M m"],
        added: Tensor | None = None,
    ) -> None:
        """Write the sum of `x @ weight.T`, plus `added`, into `out`; each x is an operand."""
        ...

    def input_gradient(
        self, *terms: tuple[Float[Tensor, "M m"], Float[Tensor, "m n"]], out: Float[Tensor, "M n"]
    ) -> Tensor:
        """Write the sum of `grad @ weight` into `out`; the gradients are operands."""
        ...

    def weight_gradient(
        self,
        grad: Float[Tensor, "M m"],
        x: Float[Tensor, "M n"],
        *,
        added: Float[Tensor, "m n"] | None = None,
    ) -> Float[Tensor, "m n"]:
        """`grad.T @ x` of two operands, plus `added`, which is overwritten."""
        ...


class FullProducts:
    """Products in the type of activations, which the weights have, too.

    Args:
        dtype: That type.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.scratch = ScratchBuffers()

    def operand(self, x: Tensor) -> Tensor:
        return x

    def linear(
        self, *terms: tuple[Tensor, Tensor], out: Tensor, added: Tensor | None = None
    ) -> None:
        (x, weight), *others = terms
        # BLAS takes a third longer to write into rows with gaps than the copy takes
        product = (
            out if out.is_contiguous() else self.scratch.get("product", len(out), out.shape[1], out)
        )
        torch.mm(x, weight.mT, out=product)
        for x, weight in others:
            product.addmm_(x, weight.mT)
        if added is not None:
            torch.add(added, product, out=out)
        elif product is not out:
            out.copy_(product)

    def input_gradient(self, *terms: tuple[Tensor, Tensor], out: Tensor) -> Tensor:
        (grad, weight), *others = terms
        torch.mm(grad, weight, out=out)
        for grad, weight in others:
            out.addmm_(grad, weight)
        return out

    def weight_gradient(self, grad: Tensor, x: Tensor, *, added: Tensor | None = None) -> Tensor:
        return grad.mT @ x if added is None else added.addmm_(grad.mT, x)


class BFloat16Products:
    """Products of operands that are rounded to bfloat16, with sums in float32.

    Each weight is rounded once, unless it is stored in bfloat16. As under autocast, a product is
    rounded before it is added.
    """

    dtype = torch.bfloat16

    def __init__(self) -> None:
        self.rounded: dict[int, Tensor] = {}  # weights by address

    def operand(self, x: Tensor) -> Tensor:
        return x.to(torch.bfloat16)

    def _weight(self, weight: Tensor) -> Tensor:
        address = weight.data_ptr()
        if address not in self.rounded:
            self.rounded[address] = weight.detach().to(torch.bfloat16)
        return self.rounded[address]

    def linear(
        self, *terms: tuple[Tensor, Tensor], out: Tensor, added: Tensor | None = None
    ) -> None:
        (x, weight), *others = terms
        product = torch.mm(x, self._weight(weight).mT)
        if added is None:
            out.copy_(product)
        else:
            torch.add(added, product, out=out)
        for x, weight in others:
            out.add_(torch.mm(x, self._weight(weight).mT))

    def input_gradient(self, *terms: tuple[Tensor, Tensor], out: Tensor) -> Tensor:
        (grad, weight), *others = terms
        out.copy_(torch.mm(grad, self._weight(weight)))
        for grad, weight in others:
            out.add_(torch.mm(grad, self._weight(weight)))
        return out

    def weight_gradient(self, grad: Tensor, x: Tensor, *, added: Tensor | None = None) -> Tensor:
        product = torch.mm(grad.mT, x)
        return product.float() if added is None else added.add_(product)
