import pytest

from grupo.core.types import Action, Group, Rollout, Task
from grupo.methods.ttrl import First, ttrl
from grupo.rewards.majority_vote import Majority
from grupo.rollouts.samplers import Independent
from grupo.testing.batches import batch_of


def said(text):
    return Rollout(turns=(("", Action(parts=(1,), logp=(0.0,), text=text)),))


def test_all_vote_and_some_are_learned_from():
    group = Group(Task("t", ""), tuple(said(str(i)) for i in range(5)))
    assert [r.text for r in First(2)([group])[0].rollouts] == ["0", "1"]
    assert First(9)([group])[0].rollouts == group.rollouts


def test_the_advantage_is_grpos():
    batch = batch_of(group=[0] * 4, parts={"majority": [1.0, 1.0, 1.0, 0.0]})
    # mean 3/4, std sqrt((3/16 + 9/16) / 3) = 1/2
    advantage = ttrl().credit(batch.reward, batch).tolist()
    assert advantage == pytest.approx([0.5, 0.5, 0.5, -1.5], abs=1e-5)


def test_it_gives_the_numbers_of_the_authors_code():
    # PRIME-RL/TTRL @ 3e2cc93, verl/verl/utils/reward_score/ttrl/ttt_metrics.py,
    # test_time_train_metrics; inputs as below, no ties
    group = tuple(said(rf"so \boxed{{{x}}}") for x in "7445471")
    assert Majority()(Task("t", ""), group) == [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0]


def test_the_defaults_are_the_papers():
    assert ttrl().sample == Independent(64)
    assert ttrl().curate == First(32)
