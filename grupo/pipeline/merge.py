"""Merging of the weights of several models whose tensors have the same shapes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from grupo.core.component import check_field, component
from grupo.util.errors import ConfigError

Weights = Mapping[str, Tensor]
# merges the tensors that have one name in several models, in float32; the weights sum to 1
MergeRule = Callable[[Sequence[Tensor], Sequence[float]], Tensor]


def linear(tensors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Weighted mean of tensors: x_1 + sum_i w_i (x_i - x_1).

    In this form the mean of equal tensors is exactly that tensor, without rounding errors.
    Wortsman et al., 2022, arXiv:2203.05482.

    Args:
        tensors: Tensors of the same shape.
        weights: Weight of each tensor; the weights sum to 1.

    >>> linear([torch.tensor([1.0, 2.0]), torch.tensor([3.0, 2.0])], [0.75, 0.25])
    tensor([1.5000, 2.0000])
    """
    first = tensors[0]
    result = first.clone()
    for tensor, weight in zip(tensors[1:], weights[1:], strict=True):
        result += weight * (tensor - first)
    return result


def spherical(tensors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Spherical interpolation of two tensors, each of which is treated as one vector.

    Nearly parallel tensors are merged by `linear`.
    Shoemake, 1985, Animating rotation with quaternion curves.

    Args:
        tensors: Two tensors of the same shape.
        weights: Weight of each tensor; the weights sum to 1.

    >>> spherical([torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])], [0.5, 0.5])
    tensor([0.7071, 0.7071])
    """
    first, second = tensors
    norms = first.norm() * second.norm()
    cosine = float((first * second).sum() / norms) if norms > 0 else 1.0
    angle = math.acos(max(-1.0, min(1.0, cosine)))
    if math.sin(angle) < 1e-4:
        return linear(tensors, weights)
    first_coef, second_coef = (math.sin(weight * angle) / math.sin(angle) for weight in weights)
    return first_coef * first + second_coef * second


@component
class WeightMerge:
    """The merged weights of several stages.

    The adapters of a stage are merged into its model before the models are merged.

    Args:
        shares: Share of each stage, by a reference to the stage: `{"sft": 0.5, "dpo@best": 0.5}`. A
            reference ends in `@best` or `@STEP` for a checkpoint; otherwise it stands for the last
            checkpoint. The shares sum to 1.
        rule: Merges the tensors that have the same name: `linear`, or `spherical` for two stages.

    >>> WeightMerge({"sft": 0.5, "dpo": 0.5}).shares
    (('sft', 0.5), ('dpo', 0.5))
    """

    shares: tuple[tuple[str, float], ...] | Mapping[str, float]  # a mapping is stored as pairs
    rule: MergeRule = linear

    def __post_init__(self) -> None:
        given: Any = self.shares
        pairs = tuple(given.items()) if isinstance(given, Mapping) else given
        object.__setattr__(self, "shares", pairs)
        check_field(self, "shares", _are_shares(pairs), 'shares by stage: {"a": 0.5, "b": 0.5}')
        total = sum(weight for _, weight in pairs)
        is_one = math.isclose(total, 1, abs_tol=1e-6)
        check_field(self, "shares", is_one, f"shares that sum to 1; these sum to {total:g}")
        references = [reference for reference, _ in pairs]
        are_distinct = len(set(references)) == len(references)
        check_field(self, "shares", are_distinct and len(references) > 1, "two or more stages")
        can_merge = self.rule is not spherical or len(pairs) == 2
        check_field(self, "rule", can_merge, "linear, or spherical for two stages")

    @property
    def pairs(self) -> tuple[tuple[str, float], ...]:
        """Pairs of a reference to a stage and the share of this stage."""
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
    """The merged tensors by name. A tensor is computed when it is read.

    Args:
        sources: The tensors of each model, by name. All models have the same names and shapes.
        weights: Weight of each model; the weights sum to 1.
        rule: Merges the tensors that have the same name.

    Raises:
        ConfigError: Tensors of two models differ in name or shape.
    """

    sources: Sequence[Weights]
    weights: Sequence[float]
    rule: MergeRule = linear

    def __post_init__(self) -> None:
        check_same_shapes(
            [{n: tuple(x.shape) for n, x in source.items()} for source in self.sources]
        )

    def __getitem__(self, name: str) -> Tensor:
        tensors = [source[name].detach().to("cpu", torch.float32) for source in self.sources]
        return self.rule(tensors, self.weights)

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
        names: Names of the models, for the message.
    """
    for number, other in enumerate(shapes[1:], 1):
        if differing := shapes[0].items() ^ other.items():
            tensor = min(differing)[0]
            first, second = (names[0], names[number]) if names else ("the first", f"model {number}")
            raise ConfigError(
                f"start: {tensor!r} has shape {shapes[0].get(tensor, 'none')} in {first} and"
                f" {other.get(tensor, 'none')} in {second}. Allowed: a merge of models with the"
                " same shapes."
            )
