"""Ada-GRPO: eight rollouts, two of a rare format and six of a common one."""

import pytest

from grupo.core.schedules import resolve_schedules
from grupo.methods.ada_grpo import RarityScale, ada_grpo
from grupo.testing.batches import make_batch


def paid(strength, mode=(1.0, 1.0, *[3.0] * 6), reward=(1.0,) * 8):
    batch = make_batch(
        group=[0] * len(mode), reward=list(reward), reward_terms={"mode": list(mode)}
    )
    return RarityScale(strength)(batch.reward, batch).tolist()


def test_the_rare_format_earns_most_at_first():
    assert paid(1.0) == pytest.approx([4.0] * 2 + [8 / 6] * 6)


def test_halfway_and_at_the_end():
    assert paid(0.5) == pytest.approx([2.5] * 2 + [1 + (8 / 6 - 1) / 2] * 6)
    assert paid(0.0) == [1.0] * 8


def test_strength_falls_along_half_a_cosine():
    strengths = [resolve_schedules(ada_grpo(), p).advantage.estimators[0].rarity_coef for p in (0.0, 0.5, 1.0)]
    assert strengths == pytest.approx([1.0, 0.5, 0.0])


def test_rare_and_wrong_is_still_wrong():
    assert paid(1.0, mode=(1.0, 2.0), reward=(0.0, 1.0)) == [0.0, 2.0]


def test_an_unknown_format_earns_nothing():
    assert paid(1.0, mode=(-1.0, 2.0), reward=(1.0, 1.0)) == [0.0, 2.0]


def test_formats_of_other_groups_are_not_counted():
    batch = make_batch(
        group=[0, 0, 1, 1], reward=[1.0] * 4, reward_terms={"mode": [1.0, 2.0, 1.0, 1.0]}
    )
    assert RarityScale(1.0)(batch.reward, batch).tolist() == [2.0, 2.0, 1.0, 1.0]


def test_it_gives_the_numbers_of_the_authors_code():
    # TEAM-ARM/arm @ cee2053, verl/verl/trainer/ppo/core_algos.py,
    # compute_ada_grpo_outcome_advantage; step 30 of 100; inputs as below
    batch = make_batch(
        group=[0] * 5 + [1] * 5,
        reward=[1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.5],
        length=[3, 1, 2, 3, 2, 1, 2, 3, 3, 1],
        reward_terms={"mode": [3.0, 3.0, 3.0, 0.0, 2.0, 1.0, 1.0, 3.0, -1.0, 0.0]},
    )
    recorded = [0.04831594601273537, -0.847912073135376, 0.04831594601273537]
    recorded += [1.5991923809051514, -0.847912073135376]
    recorded += [0.2851405739784241, -0.9642536640167236, 1.4169955253601074]
    recorded += [-0.9642536640167236, 0.2263709455728531]
    advantage = (
        batch.with_advantage(resolve_schedules(ada_grpo(), 0.3).advantage).advantage[:, 0].tolist()
    )
    assert advantage == pytest.approx(recorded, rel=1e-5)


def test_the_defaults_are_the_papers():
    assert ada_grpo() == ada_grpo(group_size=8, clip_eps=0.2, kl_coef=0.001)
