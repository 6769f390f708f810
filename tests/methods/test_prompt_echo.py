import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.methods.prompt_echo import PromptLikelihood, mean_prompt_logp, prompt_echo
from grupo.testing.batches import make_batch


def test_reward_is_mean_over_prompt_tokens():
    assert mean_prompt_logp([-1.0, -2.0, -3.0]) == -2.0


def test_image_is_scored_with_prompt_of_its_task():
    images = [Rollout(turns=(("", Response((1,), (0.0,), text=t)),)) for t in ("dim", "clear")]
    logps = {("cat", "dim"): [-3.0, -5.0], ("cat", "clear"): [-1.0, -2.0]}
    reward = PromptLikelihood(lambda task, rollout: logps[task.key, rollout.text])
    assert reward(Task("cat", "a cat"), images) == [-4.0, -1.5]


def test_sum_and_mean_have_equal_advantages():
    means, sums = [-2.0, -1.0, -1.5], [-6.0, -3.0, -4.5]
    batch = make_batch(group=[0] * 3, reward_terms={"echo": means})
    other = make_batch(group=[0] * 3, reward_terms={"echo": sums})
    A = prompt_echo().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([-1.0, 1.0, 0.0], abs=1e-5)  # std of -2 -1 -1.5 is 1/2
    assert prompt_echo().advantage(other.reward, other).tolist() == pytest.approx(
        A.tolist(), abs=1e-5
    )


def test_requires_one_reward_term_and_no_reference():
    assert prompt_echo().advantage.estimators[0].requires.reward_terms == {"echo"}
    assert prompt_echo().requires.all_signals == frozenset()
