"""Shuffled options: attempts read the options in different orders and vote for an option."""

import asyncio
from random import Random

from grupo.core.answer_options import find_options
from grupo.core.component import check_field, component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.forms import fill, placeholders
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn
from grupo.core.ranges import Calls
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.best_of import NOT_SAMPLED, mark_not_sampled
from grupo.rollouts.turns.choices import index_of_most_voted, text_since
from grupo.rollouts.turns.forced_start import append_forced
from grupo.rollouts.turns.private_context import answer_to_prompt, task_text, with_task_text

PLACEHOLDERS = ("letter", "option")  # of `answer_form`


@component
class ShuffledOptions:
    """A turn with n attempts at a question with options, each with another order of the options.

    The options are lines of the prompt such as "A) Lima". The letters keep their order, and the
    texts after them are permuted. Attempts vote for the text of an option. With as many attempts as
    options, each text is once in each position, so that a preference of the policy for a position
    cancels. The answer of the turn has the letter of the option in the original prompt.

    If several options have the most votes, the one that got the first of these votes wins. If no
    attempt names an option, the first attempt is returned. A prompt without options is answered
    once, and the usage `options/missing` counts it. Each answer, also one without a vote, is marked
    as not sampled, so that no loss reads a ratio of new to old probability for it.

    Args:
        n: Number of attempts at the turn.
        extract: Finds the answer in the text of an attempt: a letter or an option's text.
        answer_form: The text of the answer, with {letter}, {option}, or both.
        inner: Generates an attempt.

    Raises:
        ConfigError: `answer_form` has no placeholder, or an unknown one.
    """

    n: Calls = 5
    extract: Extractor = final_answer
    answer_form: str = "{letter}"
    inner: TurnStrategy = single_response

    provides = NOT_SAMPLED  # no answer of this turn is a sample of the policy: none has a ratio

    def __post_init__(self) -> None:
        names = placeholders(self.answer_form)
        allowed = "a text with {letter}, {option} or both"
        check_field(self, "answer_form", bool(names) and set(names) <= set(PLACEHOLDERS), allowed)

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        options = find_options(task_text(observation))
        if options is None:
            add_external_usage({"options/missing": 1.0})
            return mark_not_sampled(rollout, await self.inner(actor, rollout, observation))
        turn = len(rollout.turns)
        orders = option_orders(len(options.contents), self.n, actor.rng("options", turn))
        prompts = (with_task_text(observation, options.text(order)) for order in orders)
        attempts = await asyncio.gather(
            *(
                answer_to_prompt(
                    actor.fork("attempt", turn, i), rollout, observation, prompt, self.inner
                )
                for i, prompt in enumerate(prompts)
            )
        )
        texts = [text_since(rollout, attempt) for attempt in attempts]
        extracted = [self.extract(text) or "" for text in texts]
        votes = [options.named(x, order) for x, order in zip(extracted, orders, strict=True)]
        for i, (text, index) in enumerate(zip(texts, votes, strict=True)):
            voted_for = "none" if index is None else options.contents[index]
            add_private_turn(f"attempt {i + 1} of {self.n}, vote for {voted_for}", text)
        winner = votes[index_of_most_voted(votes)]
        if winner is None:
            return mark_not_sampled(rollout, attempts[0])
        values = {"letter": options.letter(winner), "option": options.contents[winner]}
        return await append_forced(actor, rollout, observation, fill(self.answer_form, values))


def option_orders(num_options: int, count: int, rng: Random) -> list[tuple[int, ...]]:
    """Orders of options: all rotations of one random order, then those of another one.

    If there are as many orders as options, each option is once in each position.

    >>> orders = option_orders(3, 3, Random(0))
    >>> [sorted(position) for position in zip(*orders)]
    [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    orders: list[tuple[int, ...]] = []
    while len(orders) < count:
        first = rng.sample(range(num_options), num_options)
        orders += [(*first[i:], *first[:i]) for i in range(num_options)]
    return orders[:count]


PAPER = Paper(
    title="Can Generalist Foundation Models Outcompete Special-Purpose Tuning? Case Study in "
    "Medicine",
    use="Questions with options. The whole method of the paper is SimilarExamples(…,"
    " inner=ShuffledOptions(5)).",
    tags=("hints", "exploration"),
    kind="evaluation",
    catalogue=("medprompt",),
    checked=("golden",),
    source=Source("abstract", "arXiv:2311.16452, abstract; the catalogue's row"),
    deviations=(
        "Orders are the rotations of a random one: each option stands equally often in each place.",
        "Examples are the nearest by BM25 instead of an embedding model.",
    ),
    missing=(
        "A comparison on a pretrained model: docs/answer_time.md has eight answers and no test.",
        "Chains of thought in the examples, unless a CollectStage with rows=solved collects them"
        " before the evaluation.",
    ),
    shown=(
        "tests/rollouts/turns/test_shuffled_options.py"
        "::test_a_liking_for_a_position_cancels_and_knowledge_does_not",
    ),
)
