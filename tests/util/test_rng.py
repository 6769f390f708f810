import pytest
import torch

from grupo.util.rng import derive_key, make_rng, seed_torch, uniform

FULL = 2**64 - 1


def splitmix64(key, position):
    """The finaliser of Steele, Lea and Flood (2014) at the key plus `position` golden gammas."""
    x = (key + position * 0x9E3779B97F4A7C15) & FULL
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & FULL
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & FULL
    return ((x ^ (x >> 31)) >> 11) * 2.0**-53 + 2.0**-54


def test_uniform_is_splitmix64_on_53_bits():
    keys = [0, 1, 12345, 2**62 + 7, 2**63 - 1, derive_key(0, "a")]
    positions = [0, 1, 2, 1_000_003]
    for key in keys:
        drawn = uniform(torch.full((4,), key), torch.tensor(positions)).tolist()
        assert drawn == [splitmix64(key, position) for position in positions]


def test_uniform_agrees_with_the_published_first_output_of_seed_zero():
    # the generator's first output adds one gamma: 0xE220A8397B1DCDAF
    drawn = uniform(torch.tensor([0]), torch.tensor([1])).item()
    assert drawn == (0xE220A8397B1DCDAF >> 11) * 2.0**-53 + 2.0**-54


def draws(count):
    return uniform(torch.full((count,), derive_key(7, "stream")), torch.arange(count))


def test_uniform_has_the_mean_and_the_variance_of_a_uniform():
    x = draws(100_000)
    assert x.min() > 0
    assert x.max() < 1
    assert x.mean().item() == pytest.approx(1 / 2, abs=4 * (1 / 12 / 100_000) ** 0.5)
    assert x.var().item() == pytest.approx(1 / 12, abs=4 * (1 / 180 / 100_000) ** 0.5)


def test_neighbouring_positions_and_neighbouring_streams_are_uncorrelated():
    x = draws(100_000) - 0.5
    assert abs((x[1:] * x[:-1]).mean().item() * 12) < 4 / 100_000**0.5
    keys = torch.tensor([derive_key(7, "rollout", i) for i in range(20_000)])
    y = uniform(keys, torch.zeros_like(keys)) - 0.5
    assert abs((y[1:] * y[:-1]).mean().item() * 12) < 4 / 20_000**0.5


def test_a_draw_does_not_depend_on_the_rest_of_the_batch():
    keys = torch.tensor([derive_key(0, i) for i in range(6)])
    together = uniform(keys, torch.full((6,), 3))
    alone = torch.cat([uniform(key[None], torch.tensor([3])) for key in keys.flip(0)])
    assert torch.equal(together, alone.flip(0))


def test_derived_keys_differ_by_label_and_fit_63_bits():
    keys = {derive_key(0, *label) for label in [(), ("a",), ("b",), ("a", 1), ("a", 2), (1, "a")]}
    assert len(keys) == 6
    assert all(0 <= key < 2**63 for key in keys)
    assert derive_key(1) != derive_key(0)


def test_generators_of_one_label_are_equal():
    assert make_rng(0, "x").random() == make_rng(0, "x").random() != make_rng(0, "y").random()


def test_seeding_torch_makes_its_draws_repeat():
    seed_torch(0, "model")
    first = torch.rand(3)
    seed_torch(0, "model")
    assert torch.equal(first, torch.rand(3))
