import pytest

from grupo.algo.aggregation import ConstantLength
from grupo.methods.gui_g1 import gui_g1
from grupo.rewards.bounding_box import grounding_scores
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def test_advantages_are_centred_and_weighted_by_difficulty():
    parts = {
        "hit": [1.0, 0.0],
        "iou": [0.5, 0.0],
        "box": [0.8, 0.0],
        "difficulty": [2.0, 2.0],
    }
    batch = make_batch(group=[0, 0], reward_terms=parts)
    r = 1 + 0.25 * 0.5 + 0.125 * 0.8
    advantage = gui_g1().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx(
        [2 * r / 2, -2 * r / 2]
    )  # no division by a standard deviation


def test_loss_is_proportional_to_length():
    batch = make_batch(group=[0, 0], length=[2, 4])
    weight = gui_g1().aggregation(batch).sum(1)
    assert weight.tolist() == [2 / (2 * 64), 4 / (2 * 64)]


def test_matches_reference_implementation():
    # Yuqi-Zhou/GUI-G1 @ e581fe9, src/open-r1-multimodal/src/open_r1: grpo_rec.py, hit_reward,
    # iou_reward and box_reward; trainer/grpo_trainer.py, rewards to advantages and the mean over
    # tokens; inputs as below, the last rollout no box, every rate 1.5
    boxes = [(100, 80, 220, 160), (90, 100, 180, 150), (300, 300, 420, 380), (130, 60, 260, 140)]
    signals = [grounding_scores(box, (110, 90, 210, 150), width=1000, height=500) for box in boxes]
    parts = {name: [s[name] for s in signals] + [0.0] for name in ("hit", "iou", "box")}
    assert parts["hit"] == [1.0, 1.0, 0.0, 1.0, 0.0]
    weighed = [0.25 * x for x in parts["iou"]]
    assert weighed == pytest.approx([0.15625, 0.125, 0.0, 0.08064516129032258, 0.0], rel=1e-5)
    recorded = [0.1231218274111675, 0.12279749909574741, 0.08228582830791062]
    weighed = [0.125 * x for x in parts["box"]]
    assert weighed == pytest.approx([*recorded, 0.12027101313836512, 0.0], rel=1e-5)

    parts["difficulty"] = [1.5] * 5
    batch = make_batch(group=[0] * 5, length=[2, 3, 1, 2, 3], reward_terms=parts)
    batch, A = batch.with_advantage(gui_g1().advantage), [0.5172975659370422, 0.48572319746017456]
    A += [-0.6797884702682495, 0.43884187936782837, -0.7620742917060852]
    assert batch.advantage[:, 0].tolist() == pytest.approx([1.5 * a for a in A], rel=1e-5)
    loss = -(gui_g1().aggregation(batch) * batch.advantage).sum()  # at ratios of 1
    assert loss.item() == pytest.approx(-0.0018911116058006883, rel=1e-5)


def test_defaults_match_release():
    method = gui_g1()
    assert method.sampler == GroupSampler(8)
    assert method.aggregation == ConstantLength(64)
    assert method.advantage.estimators[0].weights == (("hit", 1.0), ("iou", 0.25), ("box", 0.125))
