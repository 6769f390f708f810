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


def test_the_advantage_is_the_difference_from_the_mean_of_the_group():
    batch = make_batch(group=[0, 0, 0, 1, 1], reward_terms={"echo": [-2.0, -1.0, -1.5, -4.0, -6.0]})
    A = prompt_echo().advantage(batch.reward, batch)
    assert A.tolist() == [-0.5, 0.5, 0.0, 1.0, -1.0]  # the means are -1.5 and -5


def test_requires_one_reward_term_and_no_reference():
    assert prompt_echo().advantage.estimators[0].requires.reward_terms == {"echo"}
    assert prompt_echo().requires.all_signals == frozenset()
