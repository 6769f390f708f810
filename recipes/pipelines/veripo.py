"""VerIPO: GRPO, a verifier of its rollouts, DPO, and GRPO again. Li et al., 2025, arXiv:2505.19000.

Clips and questions are those of `clips.py`, in words; `veripo_table.py` writes the table of
`docs/pipelines_shown.md`. `recipes/vision/veripo_clips.py` has clips of pictures.

python recipes/pipelines/veripo.py       # writes the model after supervised training
grupo train recipes/pipelines/veripo.py:PIPELINE --run runs/veripo
"""

from pathlib import Path

from clips import (
    FRAME_TOKENS,
    SO,
    TAGS,
    WAIT,
    demonstrations,
    held_out_tasks,
    supervised_tasks,
    training_tasks,
)

from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.tiny_lm import train_tiny_lm
from grupo.methods.dpo import dpo
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import Pipeline, VerifiedPairs, verified_loop
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import (
    AfterMarker,
    ConclusionMatch,
    EnoughWords,
    ExactMatch,
    InsideTag,
    TagFormat,
    VariedThoughts,
)
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks import FromFunction
from grupo.util.user_paths import models_dir

PAPER = Paper(
    title="VerIPO: Cultivating Long Reasoning in Video-LLMs via Verifier-Gudied Iterative Policy"
    " Optimization",
    use="An outcome reward pays answers that their thoughts contradict, and a verifier sees it.",
    tags=("preferences", "filtering", "multimodal"),
    kind="pipeline",
    catalogue=("veripo",),
    checked=("golden", "run"),
    source=Source(
        "third_party",
        "HITsz-TMG/VerIPO README.md (stages, batch sizes, learning rates, beta, 80 % of the solved"
        " prompts); the checks and the kinds of pairs from reviews of the paper",
    ),
    missing=(
        "The table on videos: recipes/vision/veripo_clips.py runs the loop on clips of pictures and"
        " was tried on 16 tasks only.",
        "Consistency is judged by a small language model: a Judge may take the place of"
        " ConclusionMatch.",
        "The first GRPO stage on texts and single images.",
    ),
    deviations=(
        "Verifier and pass rates read new rollouts of the policy after GRPO, not those of training;"
        " their tokens count.",
        "Which flawless rollout is chosen and how many pairs a prompt has are our choice.",
        "Learning rates are those of a tiny model, the second GRPO stage and DPO at half of it.",
    ),
    shown=("docs/pipelines_shown.md#veripo",),
)

GROUP_SIZE = 8
LEARNING_RATE = 5e-4
ANSWER = InsideTag("answer")


def conclusion(text: str) -> str | None:
    """The words behind the last "so" of the thoughts.

    >>> conclusion("<think>cat red so red</think><answer>blue</answer>")
    'red'
    """
    return AfterMarker(SO)(f" {InsideTag('think')(text) or ''} ")


REWARDS = (
    RewardTerm("accuracy", ExactMatch(ANSWER)),
    RewardTerm("format", TagFormat(), 0.5),
    RewardTerm("consistent", ConclusionMatch(conclusion, ANSWER), 0.0),
    RewardTerm("varied", VariedThoughts(largest_share=0.4), 0.0),
    RewardTerm("enough", EnoughWords(4), 0.0),
)
VERIFIER = VerifiedPairs(("consistent", "varied", "enough"), reflection=WAIT)


def base_recipe(model: str, seed: int = 0) -> Recipe:
    """GRPO on accuracy and format, with the settings of all stages.

    Args:
        model: Folder of the model after supervised training.
        seed: Seed of the run.
    """
    return Recipe(
        policy=CausalLM(model, max_new_tokens=40, tokens_per_microbatch=8192),
        env=SingleTurn(REWARDS),
        tasks=FromFunction(training_tasks),
        eval_tasks=FromFunction(held_out_tasks),
        method=grpo(group_size=GROUP_SIZE, kl_coef=0.0),
        max_steps=30,
        prompts_per_step=8,
        learning_rate=LEARNING_RATE,
        save_every=1000,
        evaluation=Evaluation(every=0, attempts=4, success=SuccessCriterion("accuracy")),
        seed=seed,
    )


def pipeline(model: str, seed: int = 0, rounds: int = 1) -> Pipeline:
    """Wide search by GRPO, pairs by the verifier, DPO on them, and GRPO on fewer solved prompts.

    Args:
        model: Folder of the model after supervised training.
        seed: Seed of all stages.
        rounds: How often the loop runs.
    """
    search = base_recipe(model, seed)
    again = search.replace(learning_rate=LEARNING_RATE / 2)
    align = again.replace(method=dpo(beta=0.1), max_steps=20, prompts_per_step=32)
    return verified_loop(search, align, again, VERIFIER, attempts=GROUP_SIZE, rounds=rounds)


def save_model(folder: Path, steps: int = 1200) -> Path:
    """Train a model of 50,000 parameters on demonstrations that contradict themselves."""
    tasks = supervised_tasks()
    return train_tiny_lm(folder, tasks, demonstrations, steps=steps, tags=(*TAGS, *FRAME_TOKENS))


MODEL = models_dir() / "clips"
PIPELINE = pipeline(str(MODEL / "model"))

if __name__ == "__main__":
    save_model(MODEL)
