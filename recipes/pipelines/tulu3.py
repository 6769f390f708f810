"""Tülu 3: supervised training, length-normalised DPO, RL with verifiable rewards. arXiv:2411.15124.

A toy model shifts digits; `docs/pipelines_shown.md` has the table of `tulu3_table.py`.

python recipes/pipelines/tulu3.py       # writes the untrained model
grupo train recipes/pipelines/tulu3.py:PIPELINE --run runs/tulu3
"""

from dataclasses import replace

from shifted_digits import base_recipe, correct, save_model, unfinished

from grupo.algo.losses import KL
from grupo.core.aux_heads import ExportedHead, OwnModelHead
from grupo.core.paper import Paper, Source
from grupo.core.schedules import Cosine, Warmup
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.bradley_terry import bradley_terry
from grupo.methods.ln_dpo import ln_dpo
from grupo.methods.ppo import ppo
from grupo.methods.sft import sft
from grupo.pipeline import CollectedTasks, CollectStage, ExportStage, Pipeline, Stage
from grupo.recipe import Recipe
from grupo.rewards import FunctionReward
from grupo.util.user_paths import models_dir

PAPER = Paper(
    title="TÜLU 3: Pushing Frontiers in Open Language Model Post-Training",
    use="There are demonstrations and a verifier, and a base model is to become both.",
    tags=("sft", "preferences", "critic"),
    kind="pipeline",
    catalogue=("tulu3-rlvr",),
    source=Source(
        "code",
        "allenai/open-instruct docs/tulu3.md as cited in the catalogue: beta 5, KL 0.05, penalty"
        " -10 without an end token, the reward model's score is not added; reward 10, GAE and 4"
        " epochs from memory",
    ),
    checked=("golden", "run"),
    missing=("Prompts of several data sets with a verifier each: ByColumn routes them.",),
    deviations=(
        "Pairs are the policy's own best and worst rollouts by the verifier, not a judge's.",
        "The KL divergence from the DPO policy is a term of the loss (k3), not of the reward.",
    ),
    shown=("docs/pipelines_shown.md#tulu-3",),
)

VERIFIED = 10.0
CUT_OFF = -10.0
KL_COEF = 0.05
VALUE_FROM_REWARD_MODEL = OwnModelHead("value", start=ExportedHead("stage:exported", "score"))
RLVR_ENV = SingleTurn(
    (
        RewardTerm("correct", FunctionReward(correct), VERIFIED),
        RewardTerm("unfinished", FunctionReward(unfinished), CUT_OFF),
    )
)


def rlvr_recipe(base: Recipe, value_head: OwnModelHead) -> Recipe:
    """PPO on the verifier's reward, with a KL divergence from the policy that it starts from.

    Args:
        base: Policy and tasks.
        value_head: The value model and what it starts from.
    """
    method = ppo(epochs=4, value_head=value_head)
    return base.replace(
        env=RLVR_ENV,
        method=method.replace(loss=method.loss + KL_COEF * KL()),
        max_steps=30,
        prompts_per_step=64,
        learning_rate=3e-4,
        aux_head_learning_rate=1e-3,
        evaluation=replace(base.evaluation, every=3),
    )


def pipeline(model: str, seed: int = 0) -> Pipeline:
    """The stages, and RLVR a second time with a value model that starts as the policy does.

    Args:
        model: Folder of the untrained model.
        seed: Seed of all stages.
    """
    base = base_recipe(model).replace(seed=seed)
    pairs = base.replace(tasks=CollectedTasks("pairs"))
    sft_rate, dpo_rate = Warmup(0.05, Cosine(5e-3, 5e-4)), Warmup(0.1, Cosine(3e-4, 3e-5))
    from_dpo = rlvr_recipe(base, OwnModelHead("value"))
    return Pipeline(
        (
            Stage("sft", base.replace(method=sft(), max_steps=250, learning_rate=sft_rate)),
            CollectStage("pairs", base, attempts=8),
            Stage("dpo", pairs.replace(method=ln_dpo(5.0), max_steps=25, learning_rate=dpo_rate)),
            Stage(
                "score",
                pairs.replace(method=bradley_terry(), max_steps=50, learning_rate=1e-3),
                start="sft",
            ),
            ExportStage("exported"),
            Stage("rlvr", rlvr_recipe(base, VALUE_FROM_REWARD_MODEL), start="dpo"),
            Stage("rlvr_from_policy", from_dpo, start="dpo"),
        )
    )


MODEL = models_dir() / "shifted-digits"
PIPELINE = pipeline(str(MODEL))

if __name__ == "__main__":
    save_model(MODEL)
