"""MedS3: a search tree writes the data of the next policy and of its process reward model.

Jiang et al., 2025, arXiv:2501.12051. Medical questions are not at hand: the questions are those of
`kinds.py`. Answers have a line of reason. Stages: a tree searches the lines of answers; solved
answers train the policy; the values of lines train a head, which chooses among answers.

python recipes/pipelines/meds3.py FOLDER                   # all stages of a toy model
python recipes/pipelines/meds3.py FOLDER --model smollm2   # the same stages of a chat model
grupo train recipes/pipelines/meds3.py:PIPELINE --run runs/meds3    # after the first command
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from kinds import ALL, ASK, MARKER, questions, reasoned

from grupo.algo.advantages import identity
from grupo.algo.losses import StepValueLoss
from grupo.core.aux_heads import FeatureHead, OwnModelHead
from grupo.core.interfaces import TurnStrategy, single_response
from grupo.core.paper import Paper, Source
from grupo.core.search_tree import UCT
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm
from grupo.method import Method
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import CollectedTasks, CollectStage, Pipeline, Stage, run_pipeline
from grupo.pipeline.rows import solved
from grupo.recipe import Recipe
from grupo.rewards import AfterMarker, ExactMatch
from grupo.rollouts.samplers import TreeAnswers
from grupo.rollouts.turns import BestOf, Vote
from grupo.rollouts.turns.choices import ByHead, HeadVote
from grupo.tasks import FromFunction
from grupo.training.resume.load_run import load_policy
from grupo.util.console import print_line
from grupo.util.user_paths import models_dir

PAPER = Paper(
    title="MedS3: Towards Medical Slow Thinking with Self-Evolved Soft Dual-sided Process"
    " Supervision",
    use="Whole answers can be verified, and answers have steps of which some are wrong.",
    tags=("tree", "process-reward", "sft"),
    kind="pipeline",
    catalogue=("meds3",),
    checked=("golden", "run"),
    source=Source(
        "code",
        "pixas/MedSSS, Evol_Instruct/MCTS/tree.py (its first half), tree_node.py and"
        " config/trial5.json; the training of the reward model was not opened; the abstract",
    ),
    plan="one epoch of supervised training, then one update per step of the head",
    missing=(
        "Medical questions; steps of reflection; a search that starts from the reward model.",
        "Preference pairs of the later versions, and labels lowered where a step loses value.",
    ),
    deviations=(
        "A step is valued by the answers that go through it; the release samples 20 more answers of"
        " each new step, or fewer in the depth.",
        "16 iterations of 3 lines; the release stops at 60 nodes or 4 right answers.",
        "The loss is the squared error of the value; the release's is not known to us.",
        "Sums of predictions below 0 count 0 in the vote.",
    ),
    shown=(
        "tests/recipes/test_meds3.py::test_values_of_the_lines_are_the_labels",
        "docs/pipelines_shown.md#meds3",
    ),
)
RIGHT = 0.55  # of the reasons in the demonstrations
DEMONSTRATED = 15  # answers to each question that the toy model clones
TOY_FORM = "{word}\n"  # the toy model knows the kinds by heart, so that no options are named
EXTRACT = AfterMarker(MARKER)
HEAD = OwnModelHead("process", initial_value=0.5)
MODEL = models_dir() / "kinds" / "model"
TREE = TreeAnswers(iterations=12, branches=4, max_depth=2, priority=UCT(0.5))


def process_reward(sampler: TreeAnswers = TREE, head: FeatureHead = HEAD) -> Method:
    """The squared error of a head with the values of the steps of a search tree.

    Args:
        sampler: Searches the steps.
        head: Predicts the value of the steps so far.
    """
    return Method(sampler=sampler, advantage=identity, loss=StepValueLoss(head))


def toy_questions() -> Iterator[Task]:
    """A question about each thing: cloned, searched, trained on and evaluated."""
    return questions(0, len(ALL), TOY_FORM)


def recipe(model: str, seed: int = 0) -> Recipe:
    """The common part of all stages on the toy model."""
    return Recipe(
        policy=CausalLM(model, max_new_tokens=16, tokens_per_microbatch=8192),
        env=SingleTurn((RewardTerm("right", ExactMatch(EXTRACT)),)),
        tasks=FromFunction(toy_questions),
        eval_tasks=0,
        max_steps=24,
        prompts_per_step=18,
        learning_rate=1e-3,
        seed=seed,
    )


def stages(base: Recipe, head_rate: float = 3e-3) -> Pipeline:
    """Search, supervised training on solved answers, and training of the head.

    Args:
        base: The common part of the stages.
        head_rate: Learning rate of the head's model.
    """
    supervised = base.replace(method=sft(), tasks=CollectedTasks("paths"))
    head = base.replace(
        method=process_reward(), learning_rate=0.0, aux_head_learning_rate=head_rate
    )
    return Pipeline(
        (
            CollectStage("paths", base, sampler=TREE, rows=solved),
            Stage("sft", supervised),
            Stage("process", head),
        )
    )


PIPELINE = stages(recipe(str(MODEL)))


def demonstrations(task: Task) -> Sequence[str]:
    """The answer with a reason, often a wrong one, that the toy model clones."""
    return [reasoned(task, RIGHT)]


def save_model(folder: Path, steps: int = 80) -> Path:
    """Train the toy model, and return its folder."""
    tasks = [*questions(0, DEMONSTRATED * len(ALL), TOY_FORM)]
    lines = {line for task in tasks for line in (str(task.prompt), *answer_lines(task))}
    return train_tiny_lm(folder, tasks, demonstrations, steps=steps, tags=lines)


def answer_lines(task: Task) -> Sequence[str]:
    """The lines of the demonstrated answer, each of which is one token of the toy model."""
    return demonstrations(task)[0].splitlines(keepends=True)


def chat_stages(model: str) -> Pipeline:
    """The stages of a chat model, short."""
    base = recipe(model).replace(
        policy=CausalLM(model, max_new_tokens=32, apply_chat_template=True),
        tasks=FromFunction(asked_questions),
        max_steps=4,
        prompts_per_step=4,
        learning_rate=1e-5,
        save_every=4,
    )
    return stages(base, head_rate=1e-5)


def asked_questions() -> Iterator[Task]:
    """Questions in words, for a chat model."""
    return questions(0, 24, ASK)


STRATEGIES: Mapping[str, TurnStrategy] = {
    "single": single_response,
    "vote of 4": Vote(4, EXTRACT),
    "best of 4 by the head": BestOf(4, ByHead(HEAD.name)),
    "vote of 4 by the head": BestOf(4, HeadVote(HEAD.name, EXTRACT)),
}


def accuracies(root: Path, pipeline: Pipeline, seed: int) -> Iterator[tuple[str, float]]:
    """Accuracy before the stages, after them, and of choices by the head."""
    base = pipeline.stages[0].recipe
    tasks = base.tasks.load()
    policies = {
        "start": (base.policy.build(), ("single", "vote of 4")),
        "sft": (load_policy(root / "sft")[0], ("single", "vote of 4")),
        "process": (load_policy(root / "process")[0], tuple(STRATEGIES)),
    }
    for stage, (policy, names) in policies.items():
        for name in names:
            terms = mean_terms(
                policy, base.env, tasks, attempts=4, seed=seed, turn_strategy=STRATEGIES[name]
            )
            yield f"{stage}, {name}", terms["reward"]


def main(
    folder: Annotated[Path, typer.Argument(help="Receives the runs and results.jsonl.")],
    seeds: Annotated[int, typer.Argument(help="Number of seeds.")] = 1,
    model: Annotated[str, typer.Option(help="A chat model in place of the toy model.")] = "",
) -> None:
    """Run all stages, and print and append the accuracy after each."""
    if not model and not MODEL.is_dir():
        save_model(MODEL.parent)
    for seed in range(seeds):
        pipeline = chat_stages(model) if model else stages(recipe(str(MODEL), seed))
        root = run_pipeline(pipeline, folder / f"{model or 'toy'}{seed}")
        for name, value in accuracies(root, pipeline, seed):
            line = json.dumps({"model": model or "toy", "seed": seed, "arm": name, "right": value})
            print_line(line)
            with (folder / "results.jsonl").open("a") as file:
                file.write(f"{line}\n")


if __name__ == "__main__":
    typer.run(main)
