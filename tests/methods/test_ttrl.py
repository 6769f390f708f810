import pytest

from grupo.core.types import Group, Response, Rollout, Task
from grupo.methods.ttrl import KeepFirst, ttrl
from grupo.rewards.majority_vote import MajorityVote
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def rollout(text):
    return Rollout(turns=(("", Response(items=(1,), logp=(0.0,), text=text)),))


def test_all_rollouts_vote_and_subset_is_trained():
    group = Group(Task("t", ""), tuple(rollout(str(i)) for i in range(5)))
    assert [r.text for r in KeepFirst(2)([group])[0].rollouts] == ["0", "1"]
    assert KeepFirst(9)([group])[0].rollouts == group.rollouts


def test_advantage_matches_grpo():
    batch = make_batch(group=[0] * 4, reward_terms={"majority": [1.0, 1.0, 1.0, 0.0]})
    # mean 3/4, std sqrt((3/16 + 9/16) / 3) = 1/2
    advantage = ttrl().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx([0.5, 0.5, 0.5, -1.5], abs=1e-5)


def test_matches_reference_implementation():
    # PRIME-RL/TTRL @ 3e2cc93, verl/verl/utils/reward_score/ttrl/ttt_metrics.py,
    # test_time_train_metrics; inputs as below, no ties
    group = tuple(rollout(rf"so \boxed{{{x}}}") for x in "7445471")
    assert MajorityVote()(Task("t", ""), group) == [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0]


def test_defaults_match_paper():
    assert ttrl().sampler == GroupSampler(64)
    assert ttrl().filter == KeepFirst(32)
