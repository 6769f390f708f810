"""The one trainer on a masked diffusion model that was grown on the spot."""

import pytest
from torch import Tensor

from grupo.algo.advantages import chain
from grupo.core.batch import Batch
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.coupled_grpo import coupled_grpo
from grupo.methods.justgrpo import justgrpo
from grupo.models.masked.logp_estimators import AutoregressiveEstimator, CoupledEstimator
from grupo.models.masked.unmask_order import ConfidenceOrder, LeftToRight
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import SuccessCriterion, evaluate
from grupo.toy import ReversalTasks, ToyMaskedLM, train_toy_model
from grupo.toy.masked_lm import REVERSAL_ENV
from grupo.training.learner import Learner
from grupo.training.trainer import load_policy, resume, train

LIMIT = 5
RUNS = {
    "coupled": (coupled_grpo(group_size=8), ConfidenceOrder(LIMIT), CoupledEstimator()),
    "parallel": (
        coupled_grpo(group_size=8),
        ConfidenceOrder(LIMIT, tokens_per_step=2),
        CoupledEstimator(),
    ),
    "just": (justgrpo(max_length=LIMIT, group_size=8), LeftToRight(), AutoregressiveEstimator()),
}


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> str:
    """A model that is right about some of its tasks."""
    return str(
        train_toy_model(
            ToyMaskedLM(target_accuracy=0.15), tmp_path_factory.mktemp("grown") / "model"
        )
    )


def recipe(folder: str, which: str, *, turned: bool = False, steps: int) -> Recipe:
    method, order, estimate = RUNS[which]
    return Recipe(
        policy=MaskedDiffusion(folder, order=order, logp_estimator=estimate, max_new_tokens=LIMIT),
        env=REVERSAL_ENV,
        tasks=ReversalTasks(2000, seed=3),
        eval_tasks=ReversalTasks(50, seed=4),
        method=method.replace(advantage=chain(method.credit, negative)) if turned else method,
        max_steps=steps,
        prompts_per_step=16,
        learning_rate=5e-4,
    )


def negative(x: Tensor, batch: Batch) -> Tensor:
    return -x


def right(learner: Learner) -> float:
    score = evaluate(
        learner.policy,
        REVERSAL_ENV,
        learner.eval_tasks,
        attempts=8,
        success=SuccessCriterion("correct"),
        key=5,
    )
    return score.sampled.value


def came_to(learner: Learner) -> tuple[float, float]:
    before = right(learner)
    for _ in range(learner.recipe.max_steps):
        learner.step()
    return before, right(learner)


@pytest.mark.slow
@pytest.mark.parametrize("which", RUNS)
def test_it_learns_and_with_the_sign_of_the_advantage_flipped_it_does_not(grown, which):
    before, after = came_to(Learner(recipe(grown, which, max_steps=40)))
    same, turned = came_to(Learner(recipe(grown, which, turned=True, max_steps=40)))
    assert same == before
    assert after > before + 0.2
    assert turned < before


@pytest.fixture(scope="module")
def sprout(tmp_path_factory) -> str:
    """A model that knows next to nothing."""
    seedling = ToyMaskedLM(
        hidden_size=16, num_layers=1, num_heads=2, max_steps=2, prompts_per_step=8, eval_every=0
    )
    return str(train_toy_model(seedling, tmp_path_factory.mktemp("sprout") / "model"))


def digits(task: Task, rollout: Rollout) -> float:
    """Some answers are better than others even of a model that knows nothing."""
    return sum(letter.isdigit() for letter in rollout.text) / LIMIT


def small(folder: str, which: str) -> Recipe:
    env, held_out = SingleTurn((RewardTerm("digits", digits),)), ReversalTasks(2, seed=4)
    return recipe(folder, which, max_steps=2).replace(
        prompts_per_step=4, eval_tasks=held_out, env=env, learning_rate=5e-3
    )


@pytest.mark.parametrize("which", RUNS)
def test_a_few_steps_change_the_policy(sprout, which):
    learner = Learner(small(sprout, which))
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    numbers = [learner.step().metrics for _ in range(2)]
    assert any(not x.equal(before[name]) for name, x in learner.policy.weights().items())
    assert all(n["grad_nonfinite"] == 0 for n in numbers)


@pytest.mark.parametrize("which", RUNS)
def test_the_ratio_of_a_fresh_answer_is_one(sprout, which):
    learner = Learner(small(sprout, which))
    learned = learner.step()
    policy = learner.recipe.policy.build()  # as it was before the step
    batch = learned.batch
    off = (policy.signals(batch).logp - batch.old_logp)[batch.mask]
    assert off.exp().tolist() == pytest.approx([1.0] * len(off), abs=1e-5)
    moved = (learner.policy.signals(batch).logp - batch.old_logp)[batch.mask]
    assert moved.abs().max() > 1e-3


def test_a_run_ends_with_the_weights_that_it_saved_and_may_sample_ahead(sprout, tmp_path):
    ahead = small(sprout, "coupled").replace(max_staleness=1, max_steps=3)
    assert train(ahead, tmp_path / "run")["steps"] == 3
    policy, again = load_policy(tmp_path / "run")
    assert again == ahead
    start = ahead.policy.build().weights()
    assert any(not x.equal(start[name]) for name, x in policy.weights().items())
    assert resume(tmp_path / "run")["steps"] == 3
