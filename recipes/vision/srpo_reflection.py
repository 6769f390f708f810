"""SRPO on pictures: reflections are paid by their effect on the answer.

Wan et al., 2025, arXiv:2506.01713; `grupo/methods/srpo_reflection.py` has its record. The beginner
has learned to describe a scene and answer, to judge its answer as right or wrong, and to describe
and answer again: three of four judgements are right, and second attempts are as good as first ones.

Named before the first run of all seeds: the accuracy of the last answer on held-out questions of
SRPO minus that of GRPO on the last answer and the format, on as many rollouts.

python recipes/vision/srpo_reflection.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from described_scenes import OPTIONS, TAGS, DescribedExamples
from scene_arms import (
    BLIND,
    CORRECT,
    GROUP_SIZE,
    GRPO,
    HELD_OUT,
    scene_recipe,
)

from grupo.algo.minibatches import Updates
from grupo.core.component import component
from grupo.core.ranges import Probability
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms, trained
from grupo.evidence.claims.vision_arms import vision_policy
from grupo.method import Method
from grupo.methods.srpo_reflection import srpo_reflection
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch, FirstInsideTag, HasReflection, TagFormat
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers import GroupSampler, WithFirstAnswerLength
from grupo.tasks.scenes import draw_scene, random_question
from grupo.toy.picture_examples import PictureExample
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision
from grupo.util.importing import load_module_file

MAX_NEW_TOKENS = 40
BLOCKS = ("think", "answer", "reflection", "think", "answer")


@component
class ReflectedExamples(DescribedExamples):
    """Questions with two attempts, and a judgement of the first between them.

    Args:
        judged_frac: Fraction of the judgements that are right.
    """

    judged_frac: Probability = 0.75

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        return [*super().texts(), "right", "wrong"]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question, and an answer with a reflection."""
        things, question = random_question(rng.choice([*OPTIONS]), rng)
        first = self.attempt(things, question, rng)
        is_right = first.endswith(f"<answer>{question.answer}</answer>")
        seems_right = is_right == (rng.random() < self.judged_frac)
        second = first if seems_right else self.attempt(things, question, rng)
        reflection = f"<reflection>{'right' if seems_right else 'wrong'}</reflection>"
        answer = first + reflection + second
        return PictureExample((draw_scene(things, rng),), question.text, answer)


MODEL = ToyVisionLM(ReflectedExamples(), tags=TAGS)
ENV = SingleTurn(
    (
        CORRECT,
        RewardTerm("first", ExactMatch(FirstInsideTag("answer")), weight=0.0),
        RewardTerm("format", TagFormat(BLOCKS), weight=0.5),
        RewardTerm("reflection", HasReflection(), weight=0.0),
    )
)


def reflection_recipe(seed: int, method: Method | None = None) -> Recipe:
    """SRPO with one update per step, or another method.

    Args:
        seed: Seed of the run.
        method: The method.
    """
    srpo = replace(
        srpo_reflection(GROUP_SIZE),
        sampler=WithFirstAnswerLength(GroupSampler(GROUP_SIZE)),
        updates=Updates(),
    )
    return scene_recipe(method or srpo, seed, env=ENV, model=MODEL, max_new_tokens=MAX_NEW_TOKENS)


def evaluated(policy: HasActor, seed: int) -> Metrics:
    """Accuracies of both answers and the format on held-out questions; the last one also blind."""
    seen = mean_terms(policy, ENV, HELD_OUT.load(), attempts=4, seed=seed)
    blind = mean_terms(policy, ENV, BLIND.load(), attempts=1, seed=seed)
    return {
        "accuracy": seen["correct"],
        "first": seen["first"],
        "format": seen["format"],
        "length": seen["length"],
        "blind": blind["correct"],
    }


def arm(method: Method | None) -> Callable[[int], Metrics]:
    """Trains with a method and returns the metrics of the policy."""
    return lambda seed: evaluated(trained(reflection_recipe(seed, method)).policy, seed)


def main(folder: Path, first_seed: int = 0, end: int = 8) -> None:
    """Write the table of all seeds."""
    ensure_trained_vision(MODEL)
    arms = {
        "beginner": lambda seed: evaluated(vision_policy(MODEL, MAX_NEW_TOKENS).build(), seed),
        "GRPO": arm(GRPO),
        "SRPO": arm(None),
    }
    runs = stored_runs(folder / "runs.jsonl", arms, range(first_seed, end))
    print(paired_table(runs, ["accuracy", "first", "format", "length", "blind"], "GRPO"))


if __name__ == "__main__":
    # a component must be in a module that can be imported again
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
