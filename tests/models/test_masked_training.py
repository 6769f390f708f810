"""Training of a masked diffusion toy model."""

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
from grupo.training.resume.load_run import load_policy
from grupo.training.start import resume_training, run_training
from tests.helpers.fast_cases import fast_cases

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
def pretrained(tmp_path_factory) -> str:
    """A model with 15 % accuracy on its tasks."""
    folder = tmp_path_factory.mktemp("pretrained") / "model"
    return str(train_toy_model(ToyMaskedLM(target_accuracy=0.15), folder))


def recipe(folder: str, which: str, *, negated: bool = False, max_steps: int) -> Recipe:
    method, order, estimate = RUNS[which]
    return Recipe(
        policy=MaskedDiffusion(folder, order=order, logp_estimator=estimate, max_new_tokens=LIMIT),
        env=REVERSAL_ENV,
        tasks=ReversalTasks(2000, seed=3),
        eval_tasks=ReversalTasks(50, seed=4),
        method=method.replace(advantage=chain(method.advantage, negate)) if negated else method,
        max_steps=max_steps,
        prompts_per_step=16,
        learning_rate=5e-4,
    )


def negate(x: Tensor, batch: Batch) -> Tensor:
    return -x


def accuracy(learner: Learner) -> float:
    score = evaluate(
        learner.policy,
        REVERSAL_ENV,
        learner.eval_tasks,
        num_attempts=8,
        success=SuccessCriterion("correct"),
        key=5,
    )
    return score.sampled.value


def accuracy_before_and_after(learner: Learner) -> tuple[float, float]:
    before = accuracy(learner)
    for _ in range(learner.recipe.max_steps):
        learner.step()
    return before, accuracy(learner)


@pytest.mark.slow
@pytest.mark.parametrize("which", RUNS)
def test_it_learns_and_with_negated_advantages_it_does_not(pretrained, which):
    before, after = accuracy_before_and_after(Learner(recipe(pretrained, which, max_steps=40)))
    same_before, negated_after = accuracy_before_and_after(
        Learner(recipe(pretrained, which, negated=True, max_steps=40))
    )
    assert same_before == before
    assert after > before + 0.2
    assert negated_after < before


@pytest.fixture(scope="module")
def barely_trained(tmp_path_factory) -> str:
    """A model after two steps of pretraining."""
    toy = ToyMaskedLM(
        hidden_size=16, num_layers=1, num_heads=2, max_steps=2, prompts_per_step=8, eval_every=2
    )
    return str(train_toy_model(toy, tmp_path_factory.mktemp("barely_trained") / "model"))


def digits(task: Task, rollout: Rollout) -> float:
    """Fraction of digits, a reward that varies even with a random model."""
    return sum(letter.isdigit() for letter in rollout.text) / LIMIT


def small_recipe(folder: str, which: str) -> Recipe:
    env, held_out = SingleTurn((RewardTerm("digits", digits),)), ReversalTasks(2, seed=4)
    return recipe(folder, which, max_steps=2).replace(
        prompts_per_step=4, eval_tasks=held_out, env=env, learning_rate=5e-3
    )


@pytest.mark.parametrize("which", fast_cases(1, RUNS))
def test_training_steps_change_the_weights(barely_trained, which):
    learner = Learner(small_recipe(barely_trained, which))
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    numbers = [learner.step().metrics for _ in range(2)]
    assert any(not x.equal(before[name]) for name, x in learner.policy.weights().items())
    assert all(n["grad_nonfinite"] == 0 for n in numbers)


@pytest.mark.parametrize("which", fast_cases(1, RUNS))
def test_ratio_of_an_on_policy_answer_is_one(barely_trained, which):
    learner = Learner(small_recipe(barely_trained, which))
    result = learner.step()
    policy = learner.recipe.policy.build()  # the weights before the step
    batch = result.batch
    off = (policy.signals(batch).logp - batch.old_logp)[batch.mask]
    assert off.exp().tolist() == pytest.approx([1.0] * len(off), abs=1e-5)
    moved = (learner.policy.signals(batch).logp - batch.old_logp)[batch.mask]
    assert moved.abs().max() > 1e-3


@pytest.mark.slow
def test_asynchronous_run_saves_its_final_weights(barely_trained, tmp_path):
    asynchronous = small_recipe(barely_trained, "coupled").replace(max_staleness=1, max_steps=3)
    assert run_training(asynchronous, tmp_path / "run")["steps"] == 3
    policy, loaded = load_policy(tmp_path / "run")
    assert loaded == asynchronous
    start = asynchronous.policy.build().weights()
    assert any(not x.equal(start[name]) for name, x in policy.weights().items())
    assert resume_training(tmp_path / "run")["steps"] == 3
