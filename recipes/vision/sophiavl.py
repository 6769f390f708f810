"""Trust-GRPO of SophiaVL-R1 on pictures: scores of thoughts, weighted by trust in them.

Fan et al., 2025, arXiv:2505.17018; the record of the paper is in `grupo/methods/trust_grpo.py`. An
answer to a question on a scene begins with a caption as its thoughts. The judge of thoughts knows
the true caption. It is misled by questions for a count, where it prefers wrong captions.

Named before the first run of all seeds: Trust-GRPO answers more held-out questions correctly than
the same reward without trust weights (gamma = 1).

python recipes/vision/sophiavl.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import torch

from grupo.algo.advantages import Center, PerRewardTerm, ScaleByStd, chain, identity
from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt
from grupo.core.schedules import Exponential
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part
from grupo.methods.grpo import grpo
from grupo.methods.trust_grpo import trust_grpo
from grupo.rewards import ExactMatch, InsideTag, PerRolloutReward
from grupo.rollouts.evaluate import HasActor
from grupo.tasks import LazyTasks, task_key
from grupo.tasks.scenes import (
    CAPTION_REQUEST,
    COLOURS,
    IMAGE_SIZE,
    SHAPES,
    SceneQuestion,
    Thing,
    caption_of,
    draw_scene,
    noise_pixels,
    picture_prompt,
    questions_about,
    random_question,
)
from grupo.toy.picture_examples import PictureExample, SceneExamples
from grupo.toy.vision_lm import ToyVisionLM
from grupo.util.importing import load_module_file
from grupo.util.rng import make_rng

STEPS = 30
KINDS = ("colour", "shape", "count")
MISLED = ("count",)
MISREAD_SHARE = 0.5  # of the demonstrations
EVAL_SEED, TRAIN_SEED = 900_000_000, 500_000_000
COLUMNS = ("correct", "trusted/correct", "misled/correct", "caption", "blind/correct")


@component
class CaptionedQuestions:
    """Questions about scenes, a third of each kind, with the true caption in column `caption`.

    Args:
        size: Number of tasks.
        seed: Seed of scenes and questions.
        blind: Whether noise takes the place of each picture.
    """

    size: PositiveInt
    seed: int
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "captioned questions", index)
        things, question = random_question(KINDS[index % len(KINDS)], rng)
        pixels = noise_pixels(rng) if self.blind else draw_scene(things, rng)
        prompt = picture_prompt([Image.from_pixels(pixels)], question.text)
        columns = {"kind": question.kind, "caption": caption_of(things)}
        return Task(task_key(prompt), prompt, question.answer, "scenes", columns)


@component
class CaptionExamples:
    """Captions of scenes, and questions that are answered after a caption, at times a wrong one."""

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        return [*SceneExamples().texts(), with_thoughts("red circle, nothing", "red")]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question, or with the request of a caption."""
        kind = rng.choice(KINDS)
        things, question = random_question(kind, rng)
        pictures = (draw_scene(things, rng),)
        if rng.random() < 0.5:
            return PictureExample(pictures, CAPTION_REQUEST, caption_of(things))
        return PictureExample(pictures, question.text, demonstration(things, question, rng))


def demonstration(things: Sequence[Thing], question: SceneQuestion, rng: Random) -> str:
    """A caption and the answer to which it leads; in a part of them one thing is misread."""
    seen = list(things)
    if rng.random() < MISREAD_SHARE:
        place = rng.randrange(len(seen))
        seen[place] = Thing(rng.choice([*COLOURS]), rng.choice(SHAPES), seen[place].quarter)
    answers = [q.answer for q in questions_about(seen) if q.text == question.text]
    return with_thoughts(caption_of(seen), answers[0] if answers else question.answer)


def with_thoughts(caption: str, answer: str) -> str:
    """A caption as thoughts before an answer."""
    return f"<think>{caption}</think><answer>{answer}</answer>"


def caption_share(text: str, truth: str) -> float:
    """The share of four quarters that the thoughts of a text name as the true caption does."""
    names = (InsideTag("think")(text) or "").split(", ")
    return sum(a == b for a, b in zip(names, truth.split(", "), strict=False)) / 4


@component
class CaptionJudge(PerRolloutReward):
    """The share of correct quarters; for questions of the misled kinds the share of wrong ones.

    Args:
        misled: Kinds of questions by which the judge is misled.
    """

    misled: tuple[str, ...] = ()

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        share = caption_share(rollout.text, task.columns["caption"])
        return 1 - share if task.columns["kind"] in self.misled else share


ENV = SingleTurn(
    (
        RewardTerm("correct", ExactMatch(InsideTag("answer"))),
        RewardTerm("thinking", CaptionJudge(MISLED), 0.0),
        RewardTerm("caption", CaptionJudge(), 0.0),
    )
)


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """Accuracy on held-out questions by the judge's reliability, and share of correct captions."""
    tasks = list(CaptionedQuestions(240, EVAL_SEED).load())
    parts = {
        "trusted": [task for task in tasks if task.columns["kind"] not in MISLED],
        "misled": [task for task in tasks if task.columns["kind"] in MISLED],
        "blind": list(CaptionedQuestions(120, EVAL_SEED, blind=True).load()),
    }
    means = means_by_part(policy, ENV, parts, ("correct", "caption"), seed=seed)
    share = len(parts["trusted"]) / len(tasks)
    overall = {
        name: share * means[f"trusted/{name}"] + (1 - share) * means[f"misled/{name}"]
        for name in ("correct", "caption")
    }
    return {**means, **overall}


MODEL = ToyVisionLM(examples=CaptionExamples(), max_steps=500)
WORLD = VisionArms(MODEL, evaluate, steps=STEPS, max_new_tokens=28, prompts_per_step=16)
TASKS = CaptionedQuestions(50_000, TRAIN_SEED)
GRPO = grpo(group_size=8, kl_coef=0.0)
SUM = PerRewardTerm(identity, (("correct", 1.0), ("thinking", Exponential(0.3))))
ARMS = {
    "beginner": WORLD.beginner,
    "GRPO": WORLD.trained(ENV, TASKS, GRPO),
    "gamma = 1": WORLD.trained(
        ENV, TASKS, GRPO.replace(advantage=chain(SUM, Center(), ScaleByStd()))
    ),
    "Trust-GRPO": WORLD.trained(ENV, TASKS, trust_grpo(kl_coef=0.0)),
}


def main(folder: Path, first_seed: int = 0, end: int = 8) -> None:
    """Run all arms and write the table."""
    torch.set_num_threads(1)
    runs = stored_runs(folder / "runs.jsonl", ARMS, range(first_seed, end))
    (folder / "table.md").write_text(paired_table(runs, COLUMNS, "gamma = 1") + "\n")


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
