"""TSCAC: a policy for each auxiliary reward, then one for the main reward near them.

Cai et al., 2023, arXiv:2302.01680. Stage one trains an actor and a critic on likes, and another
pair on shares. Stage two trains an actor and a critic on watch time, near both policies of stage
one. The videos are those of `short_videos.py`; `tscac_table.py` writes the table of
`docs/pipelines_shown.md`.

python recipes/pipelines/tscac.py       # writes the behaviour policy
grupo train recipes/pipelines/tscac.py:PIPELINE --run runs/tscac
"""

from collections.abc import Mapping
from dataclasses import replace

from short_videos import AUXILIARY, LENGTH, MAIN, likes, save_model, sessions, shares, watch

from grupo.algo.losses import MultiReferenceNLL
from grupo.algo.losses.critic import ValueLoss
from grupo.core.aux_heads import OwnModelHead
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.methods.ppo import ppo
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import ExportStage, Pipeline, Stage
from grupo.recipe import Recipe
from grupo.rewards import FunctionReward
from grupo.tasks import FromFunction
from grupo.util.user_paths import models_dir

MODEL = models_dir() / "short-videos"
POLICY = CausalLM(str(MODEL / "model"), max_new_tokens=LENGTH + 1, tokens_per_microbatch=8192)
STEPS = 12  # of each stage
USERS, SESSIONS = 12, 4  # of a step: all pairs of topics, and the sessions of each
EPOCHS = 2
COEFFICIENT = 0.1  # lambda of each policy of stage one
REWARDS = {"watch": watch, "likes": likes, "shares": shares}
ACTOR_CRITIC = ppo(SESSIONS, epochs=EPOCHS, value_head=OwnModelHead("value"))


def near_policies(coefficients: Mapping[str, float]) -> Method:
    """Stage two: the likelihood, weighted towards other policies and by e^(A / S), and a critic.

    Args:
        coefficients: Weight of each policy by name, an auxiliary model of the recipe.
    """
    loss = MultiReferenceNLL(tuple(coefficients.items())) + ValueLoss()
    return ACTOR_CRITIC.replace(loss=loss)


def actor_critic_recipe(
    model: str, weights: Mapping[str, float], seed: int = 0, steps: int = STEPS
) -> Recipe:
    """An actor and a critic on a weighted sum of rewards: a policy of stage one.

    Args:
        model: Folder of the behaviour policy, from which every stage starts.
        weights: Weight of each reward by name; the others are measured only.
        seed: Seed of the run.
        steps: Number of steps.
    """
    terms = (
        RewardTerm(name, FunctionReward(reward), weights.get(name, 0.0))
        for name, reward in REWARDS.items()
    )
    return Recipe(
        policy=replace(POLICY, model=model),
        env=SingleTurn(tuple(terms)),
        tasks=FromFunction(sessions),
        eval_tasks=0,  # of 12 users none is held out
        method=ACTOR_CRITIC,
        max_steps=steps,
        prompts_per_step=USERS,
        learning_rate=3e-3,
        aux_head_learning_rate=3e-3,
        save_every=1000,
        seed=seed,
    )


def pipeline(model: str, seed: int = 0, coefficient: float = COEFFICIENT) -> Pipeline:
    """A policy for each auxiliary reward, and the policy for the main reward near them.

    Args:
        model: Folder of the behaviour policy.
        seed: Seed of all stages.
        coefficient: Weight lambda of each policy of stage one.
    """
    stages: list[Stage | ExportStage] = []
    for name in AUXILIARY:
        stages.append(Stage(name, actor_critic_recipe(model, {name: 1.0}, seed), start=""))
        stages.append(ExportStage(f"{name}_model"))
    main = actor_critic_recipe(model, {MAIN: 1.0}, seed).replace(
        method=near_policies(dict.fromkeys(AUXILIARY, coefficient)),
        aux_models=tuple(AuxModel(x, replace(POLICY, model=f"stage:{x}_model")) for x in AUXILIARY),
    )
    return Pipeline((*stages, Stage(MAIN, main, start="")))


PIPELINE = pipeline(str(MODEL / "model"))

if __name__ == "__main__":
    save_model(MODEL)
