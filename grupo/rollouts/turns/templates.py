"""Templates: a task is put into several forms of prompts, and the answers vote."""

import asyncio

from grupo.core.component import check_field, component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn
from grupo.core.types import Observation, Rollout
from grupo.rollouts.turns.best_of import CHOSEN, as_chosen
from grupo.rollouts.turns.choices import MostVoted, text_since
from grupo.rollouts.turns.private_context import answer_to_prompt, task_text, with_task_text

FORMS = (
    "{task}\n\nThink step by step, then answer.",
    "{task}\n\nFirst divide this into smaller questions and answer them, then answer the task.",
    "{task}\n\nFirst name the facts that matter, then answer.",
    "{task}\n\nFirst name the answers that are wrong, then give the right one.",
)


@component
class Templates:
    """A turn with an attempt for each form of the prompt, of which the most voted is returned.

    Ties and missing answers are those of `MostVoted`: the earliest form wins. For notes of earlier
    mistakes, put it into `Shown("notes.jsonl", 2, "A note: {note}\\n", Templates())`.

    Args:
        forms: Prompts with {task}, one for each attempt.
        extract: Finds the answer in the text of an attempt.
        inner: Generates an attempt.

    Raises:
        ConfigError: There is no form, or one lacks {task}.
    """

    forms: tuple[str, ...] = FORMS
    extract: Extractor = final_answer
    inner: TurnStrategy = single_response

    provides = CHOSEN

    def __post_init__(self) -> None:
        check_field(self, "forms", bool(self.forms), "at least one form with {task}")
        for i, form in enumerate(self.forms):
            check_form(f"Templates.forms[{i}]", form, ("task",))

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn, task = len(rollout.turns), task_text(observation)
        attempts = []
        for i, form in enumerate(self.forms):
            prompt = with_task_text(observation, fill(form, {"task": task}))
            fork = actor.fork("template", turn, i)
            attempts.append(answer_to_prompt(fork, rollout, observation, prompt, self.inner))
        candidates = await asyncio.gather(*attempts)
        index = await MostVoted(self.extract)(actor, rollout, candidates)
        for i, candidate in enumerate(candidates):
            label = f"form {i + 1} of {len(self.forms)}" + ", chosen" * (i == index)
            add_private_turn(label, text_since(rollout, candidate))
        return as_chosen(rollout, candidates[index])


PAPER = Paper(
    title="OlaGPT: Empowering LLMs With Human-like Problem-Solving Abilities",
    use="Tasks for which no single prompt is best, with notes of earlier mistakes.",
    tags=("hints", "exploration"),
    kind="evaluation",
    catalogue=("olagpt",),
    checked=("golden",),
    source=Source("abstract", "arXiv:2305.16334, abstract; the catalogue's row"),
    deviations=(
        "The texts of the forms are our choice.",
        "Notes are found by BM25 instead of an embedding model, and written before the evaluation.",
    ),
    missing=("A comparison on a pretrained model: docs/answer_time.md has eight answers of one.",),
    shown=(
        "tests/rollouts/turns/test_templates.py::test_a_note_of_a_known_mistake_flips_the_answer",
    ),
)
