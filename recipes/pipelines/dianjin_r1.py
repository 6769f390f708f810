"""DianJin-R1: reasoned answers about finance, then GRPO. Zhu et al., 2025, arXiv:2504.15716.

Statements and questions are those of `ledgers.py`; `dianjin_r1_table.py` writes the table of
`docs/pipelines_shown.md`.

python recipes/pipelines/dianjin_r1.py       # writes the untrained model
grupo train recipes/pipelines/dianjin_r1.py:PIPELINE --run runs/dianjin_r1
"""

from pathlib import Path

from ledgers import ACCOUNTS, TAGS, TOLERANCE, held_out_tasks, training_tasks

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.grpo import grpo
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import Pipeline, Stage
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import (
    ByColumn,
    Extractor,
    InsideTag,
    MultipleChoice,
    NumberWithin,
    PerRolloutReward,
    Route,
    TagFormat,
)
from grupo.rewards.base import reference_text
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks import FromFunction
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.user_paths import models_dir

PAPER = Paper(
    title="DianJin-R1: Evaluating and Enhancing Financial Reasoning in Large Language Models",
    use="Answers about figures and rules can be verified, and reasoned demonstrations exist.",
    tags=("sft", "reward"),
    kind="pipeline",
    catalogue=("dianjin-r1",),
    checked=("golden", "run"),
    source=Source("abstract", "arXiv:2504.15716, abstract; two reviews; the catalogue's row"),
    missing=("CFLUE, FinQA and the compliance set: statements are generated.",),
    deviations=(
        "Groups of 8 and the weight of the KL divergence are our choice.",
        "The tolerance of numbers is half of the last decimal that a ratio is rounded to.",
    ),
    shown=("docs/pipelines_shown.md#dianjin-r1",),
)
ARCHITECTURE = LlamaArchitecture(hidden_size=48, intermediate_size=96, context_length=80)
INSIDE = InsideTag("answer")
SFT_STEPS = 1200
RL_STEPS = 200


@component
class YesNoMatch(PerRolloutReward):
    """1 if the answer is the reference answer, yes or no, whatever its case; else 0.

    Args:
        extract: Finds the answer in the rollout's text.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout((("?", Response((1,), (0.0,), text="<answer>Yes.</answer>")),))
    >>> YesNoMatch().score(Task("k", "?", "yes"), rollout)
    1.0
    """

    extract: Extractor = INSIDE

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        answer = (self.extract(rollout.text) or "").casefold().rstrip(".")
        return float(answer == reference_text(task).casefold())


NUMBER = NumberWithin(absolute=TOLERANCE, extract=INSIDE)
ACCURACY = ByColumn(
    "kind",
    (
        *(Route(kind, NUMBER) for kind in ("assets", "equity", "ratio", "interest")),
        Route("covered", YesNoMatch()),
        Route("most", MultipleChoice(INSIDE)),
    ),
)
REWARDS = (RewardTerm("format", TagFormat()), RewardTerm("accuracy", ACCURACY))


def base_recipe(model: str, seed: int = 0) -> Recipe:
    """Policy, environment and tasks of all stages.

    Args:
        model: Folder of the untrained model.
        seed: Seed of the run.
    """
    return Recipe(
        policy=CausalLM(model, max_new_tokens=24, tokens_per_microbatch=8192),
        env=SingleTurn(REWARDS),
        tasks=FromFunction(training_tasks),
        eval_tasks=FromFunction(held_out_tasks),
        prompts_per_step=32,
        save_every=1000,
        evaluation=Evaluation(attempts=4, success=SuccessCriterion("accuracy")),
        seed=seed,
    )


def pipeline(model: str, seed: int = 0) -> Pipeline:
    """Supervised training on direct and on reasoned answers, and GRPO after the latter.

    Args:
        model: Folder of the untrained model.
        seed: Seed of all stages.
    """
    base = base_recipe(model, seed)
    supervised = base.replace(max_steps=SFT_STEPS, learning_rate=Warmup(0.05, Cosine(5e-3, 5e-4)))
    rl = base.replace(
        method=grpo(group_size=8, kl_coef=0.001),
        max_steps=RL_STEPS,
        prompts_per_step=16,
        learning_rate=5e-4,
    )
    return Pipeline(
        (
            Stage("direct", supervised.replace(method=sft("direct"))),
            Stage("reasoned", supervised.replace(method=sft("completion")), start=""),
            Stage("grpo", rl, start="reasoned"),
        )
    )


def save_model(folder: Path, seed: int = 0) -> Path:
    """Save an untrained model to a folder; an account and its balance are one token.

    Args:
        folder: The folder.
        seed: Seed of its weights.
    """
    texts = [f"{task.prompt}{task.columns['completion']}" for task in training_tasks()]
    entries = [f"{name} {balance} " for name in ACCOUNTS for balance in range(1, 10)]
    ARCHITECTURE.save_untrained(folder, word_tokenizer(texts, [*TAGS, *entries]), seed)
    return folder


MODEL = models_dir() / "ledgers"
PIPELINE = pipeline(str(MODEL))

if __name__ == "__main__":
    save_model(MODEL)
