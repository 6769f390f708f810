"""Merging of the weights of several models whose tensors have the same shapes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from grupo.core.component import check_field, component
from grupo.util.errors import ConfigError

ModelWeights = Mapping[str, Tensor]  # by the name of the tensor
# (tensors, shares) -> tensor: merges the tensors that have the same name in several models. The
# tensors are float32, and the shares sum to 1.
MergeRule = Callable[[Sequence[Tensor], Sequence[float]], Tensor]

MISSING_SHAPE = "none (it is missing)"  # in messages, the shape of a tensor that a model lacks


def linear(tensors: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    """Weighted mean of tensors: x_1 + sum_i share_i (x_i - x_1).

    In this form the mean of equal tensors is exactly that tensor, without rounding errors.
    Wortsman et al., 2022, arXiv:2203.05482.

    Args:
        tensors: Tensors of the same shape.
        shares: Share of each tensor; the shares sum to 1.

    >>> linear([torch.tensor([1.0, 2.0]), torch.tensor([3.0, 2.0])], [0.75, 0.25])
    tensor([1.5000, 2.0000])
    """
    first = tensors[0]
    result = first.clone()
    for tensor, share in zip(tensors[1:], shares[1:], strict=True):
        result += share * (tensor - first)
    return result


def spherical(tensors: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    """Spherical interpolation of two tensors, which are treated as two vectors.

    Nearly parallel tensors are merged by `linear`.
    Shoemake, 1985, Animating rotation with quaternion curves.

    Args:
        tensors: Two tensors of the same shape.
        shares: Share of each tensor; the shares sum to 1.

    >>> spherical([torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])], [0.5, 0.5])
    tensor([0.7071, 0.7071])
    """
    first, second = tensors
    norm_product = first.norm() * second.norm()
    cosine = float((first * second).sum() / norm_product) if norm_product > 0 else 1.0
    angle = math.acos(max(-1.0, min(1.0, cosine)))
    if math.sin(angle) < 1e-4:
        return linear(tensors, shares)
    first_coef, second_coef = (math.sin(share * angle) / math.sin(angle) for share in shares)
    return first_coef * first + second_coef * second


@component
class WeightMerge:
    """Specifies a policy whose weights are a merge of the policies of several stages.

    The adapters of a stage are merged into its model before the models are merged.

    Args:
        shares: The share of each stage, as in `{"sft": 0.5, "dpo@best": 0.5}`. A key refers to a
            checkpoint of a stage: `sft` to the last one, `sft@best` to the best one, and `sft@100`
            to the checkpoint of step 100. The shares sum to 1; a share may be negative.
        rule: Merges the tensors that have the same name: `linear`, or `spherical` for two stages.

    >>> WeightMerge({"sft": 0.5, "dpo": 0.5}).shares
    (('sft', 0.5), ('dpo', 0.5))
    """

    shares: tuple[tuple[str, float], ...] | Mapping[str, float]  # a mapping is stored as pairs
    rule: MergeRule = linear

    def __post_init__(self) -> None:
        shares: Any = self.shares
        pairs = tuple(shares.items()) if isinstance(shares, Mapping) else shares
        object.__setattr__(self, "shares", pairs)
        check_field(self, "shares", _are_shares(pairs), 'shares by stage: {"a": 0.5, "b": 0.5}')
        total = sum(share for _, share in pairs)
        is_one = math.isclose(total, 1, abs_tol=1e-6)
        check_field(self, "shares", is_one, f"shares that sum to 1; these sum to {total:g}")
        references = [reference for reference, _ in pairs]
        are_distinct = len(set(references)) == len(references)
        check_field(
            self, "shares", are_distinct and len(references) > 1, "two or more different references"
        )
        can_merge = self.rule is not spherical or len(pairs) == 2
        check_field(self, "rule", can_merge, "linear, or spherical for two stages")

    @property
    def pairs(self) -> tuple[tuple[str, float], ...]:
        """Pairs of a reference to a stage and the share of this stage."""
        # After `__post_init__`, `shares` is a tuple of pairs; `dict` is only for the type checker,
        # because the annotation also allows a mapping.
        return tuple(dict(self.shares).items())

    @property
    def references(self) -> tuple[str, ...]:
        """The references to the stages, such as "sft" or "sft@best"."""
        return tuple(reference for reference, _ in self.pairs)


def _are_shares(pairs: Any) -> bool:
    return isinstance(pairs, tuple) and all(
        isinstance(pair, tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], int | float)
        and math.isfinite(pair[1])
        for pair in pairs
    )


@dataclass(frozen=True)
class MergedWeights(Mapping[str, Tensor]):
    """The tensors of a merged model by name. A tensor is computed when it is read.

    Args:
        sources: The tensors of each model, by name. All models have the same names and shapes.
        shares: Share of each model; the shares sum to 1.
        rule: Merges the tensors that have the same name.

    Raises:
        ConfigError: Tensors of two models differ in name or shape.
    """

    sources: Sequence[ModelWeights]
    shares: Sequence[float]
    rule: MergeRule = linear

    def __post_init__(self) -> None:
        check_same_shapes(
            [{n: tuple(x.shape) for n, x in source.items()} for source in self.sources]
        )

    def __getitem__(self, name: str) -> Tensor:
        tensors = [source[name].detach().to("cpu", torch.float32) for source in self.sources]
        return self.rule(tensors, self.shares)

    def __iter__(self):
        return iter(self.sources[0])

    def __len__(self) -> int:
        return len(self.sources[0])


def check_same_shapes(
    shapes: Sequence[Mapping[str, tuple[int, ...]]], names: Sequence[str] = ()
) -> None:
    """Raise `ConfigError` if the tensors of some models differ in name or shape.

    Args:
        shapes: The shapes of each model's tensors, by name.
        names: Names of the models, for the message; by default "model 1", "model 2" and so on.
    """
    names = names or [f"model {number}" for number in range(1, len(shapes) + 1)]
    for other, name in zip(shapes[1:], names[1:], strict=True):
        if differing := shapes[0].items() ^ other.items():
            tensor_name = min(differing)[0]
            raise ConfigError(
                f"start: {tensor_name!r} has shape {shapes[0].get(tensor_name, MISSING_SHAPE)} in"
                f" {names[0]} and {other.get(tensor_name, MISSING_SHAPE)} in {name}."
                " Allowed: a merge of models with the same shapes."
            )
