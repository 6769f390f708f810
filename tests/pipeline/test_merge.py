"""Merging of weights: numbers by hand, equal weights bit for bit, and refused merges."""

import math

import pytest
import torch

from grupo.pipeline.merge import MergedWeights, WeightMerge, linear, spherical
from grupo.util.errors import ConfigError


def test_linear_is_the_weighted_mean():
    tensors = [torch.tensor([1.0, 4.0]), torch.tensor([3.0, 0.0]), torch.tensor([5.0, 2.0])]
    torch.testing.assert_close(linear(tensors, [0.5, 0.25, 0.25]), torch.tensor([2.5, 2.5]))


@pytest.mark.parametrize("rule", [linear, spherical])
@pytest.mark.parametrize("weight", [0.5, 0.3, 1 / 3])
def test_a_merge_of_a_and_a_is_a_bit_for_bit(rule, weight):
    tensor = torch.randn(1000) * 10 ** torch.linspace(-30, 30, 1000)
    merged = rule([tensor, tensor.clone()], [weight, 1 - weight])
    assert torch.equal(merged.view(torch.int32), tensor.view(torch.int32))


def test_spherical_keeps_the_norm_and_divides_the_angle():
    angle = torch.tensor(math.pi / 3)
    start, end = torch.tensor([2.0, 0.0]), 2 * torch.stack([angle.cos(), angle.sin()])
    merged = spherical([start, end], [0.75, 0.25])  # a quarter of 60 degrees
    expected = [2 * math.cos(math.pi / 12), 2 * math.sin(math.pi / 12)]
    torch.testing.assert_close(merged, torch.tensor(expected))


def test_spherical_of_parallel_tensors_is_linear():
    tensor = torch.tensor([1.0, 2.0])
    torch.testing.assert_close(spherical([tensor, 3 * tensor], [0.5, 0.5]), 2 * tensor)
    zero = torch.zeros(2)
    assert torch.equal(spherical([zero, tensor], [0.5, 0.5]), tensor / 2)


def test_merges_are_computed_in_float32():
    sources = [{"w": torch.tensor([value], dtype=torch.float64)} for value in (1.0, 2.0)]
    merged = MergedWeights(sources, [0.5, 0.5])
    assert merged["w"].dtype == torch.float32
    assert merged["w"].item() == 1.5


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"w": torch.zeros(3)}, r"'w' has shape \(2,\) in model 1 and \(3,\) in model 2\."),
        ({"v": torch.zeros(2)}, r"'v' has shape none \(it is missing\) in model 1 and \(2,\)"),
    ],
)
def test_other_shapes_are_refused_by_name(other, message):
    with pytest.raises(ConfigError, match=message):
        MergedWeights([{"w": torch.zeros(2)}, other], [0.5, 0.5])


@pytest.mark.parametrize(
    ("shares", "allowed"),
    [
        ({"a": 0.5, "b": 0.6}, r"shares that sum to 1; these sum to 1\.1\."),
        ({"a": 1.0}, "two or more different references"),
        ((("a", 0.5), ("a", 0.5)), "two or more different references"),
        ({"a": math.nan, "b": 1.0}, "shares by stage"),
        ({"a": "0.5", "b": 0.5}, "shares by stage"),
        ("a", "shares by stage"),
    ],
)
def test_shares_that_are_none_are_refused(shares, allowed):
    with pytest.raises(ConfigError, match=rf"WeightMerge\.shares: .*Allowed: .*{allowed}"):
        WeightMerge(shares)


def test_spherical_merges_two():
    with pytest.raises(
        ConfigError, match=r"WeightMerge\.rule: .* Allowed: linear, or spherical for two"
    ):
        WeightMerge({"a": 0.5, "b": 0.25, "c": 0.25}, spherical)
