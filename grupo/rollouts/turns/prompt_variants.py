"""Prompt variants: attempts read the task in different prompts, and their answers vote."""

import asyncio

from grupo.core.component import check_field, component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn
from grupo.core.types import Observation, Rollout
from grupo.rollouts.turns.best_of import NOT_SAMPLED, mark_not_sampled
from grupo.rollouts.turns.choices import MostVoted, text_since
from grupo.rollouts.turns.private_context import answer_to_prompt, task_text, with_task_text

PROMPTS = (
    "{task}\n\nThink step by step, then answer.",
    "{task}\n\nFirst divide this into smaller questions and answer them, then answer the task.",
    "{task}\n\nFirst name the facts that matter, then answer.",
    "{task}\n\nFirst name the answers that are wrong, then give the right one.",
)


@component
class PromptVariants:
    """A turn with an attempt for each variant of the prompt, and a vote over their answers.

    The vote is that of `MostVoted`: if answers tie, that of the earliest variant wins.

    Notes of earlier mistakes come before each variant in
    `SimilarExamples("notes.jsonl", 2, "A note: {note}\\n", PromptVariants())`.

    Args:
        prompts: Prompts with {task}, one for each attempt.
        extract: Finds the answer in the text of an attempt.
        inner: Generates an attempt.

    Raises:
        ConfigError: There is no prompt, or one lacks {task}.
    """

    prompts: tuple[str, ...] = PROMPTS
    extract: Extractor = final_answer
    inner: TurnStrategy = single_response

    provides = NOT_SAMPLED

    def __post_init__(self) -> None:
        check_field(self, "prompts", bool(self.prompts), "at least one prompt with {task}")
        for i, prompt in enumerate(self.prompts):
            check_form(f"PromptVariants.prompts[{i}]", prompt, ("task",))

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn, task = len(rollout.turns), task_text(observation)
        attempts = []
        for i, variant in enumerate(self.prompts):
            prompt = with_task_text(observation, fill(variant, {"task": task}))
            variant_actor = actor.fork("template", turn, i)
            attempts.append(
                answer_to_prompt(variant_actor, rollout, observation, prompt, self.inner)
            )
        candidates = await asyncio.gather(*attempts)
        index = await MostVoted(self.extract)(actor, rollout, candidates)
        for i, candidate in enumerate(candidates):
            label = f"variant {i + 1} of {len(self.prompts)}" + ", chosen" * (i == index)
            add_private_turn(label, text_since(rollout, candidate))
        return mark_not_sampled(rollout, candidates[index])


PAPER = Paper(
    title="OlaGPT: Empowering LLMs With Human-like Problem-Solving Abilities",
    use="Tasks for which no single prompt is best, with notes of earlier mistakes.",
    tags=("hints", "exploration"),
    kind="evaluation",
    catalogue=("olagpt",),
    checked=("golden",),
    source=Source("abstract", "arXiv:2305.16334, abstract; the catalogue's row"),
    deviations=(
        "The texts of the prompts are our choice.",
        "Notes are found by BM25 instead of an embedding model, and written before the evaluation.",
    ),
    missing=("A comparison on a pretrained model: docs/answer_time.md has eight answers of one.",),
    shown=(
        "tests/rollouts/turns/test_prompt_variants.py::test_a_note_of_a_known_mistake_flips_the_answer",
    ),
)
