"""Recalled thoughts: each turn reads thoughts about earlier turns in place of these turns."""

from dataclasses import replace

from grupo.core.component import check_field, component
from grupo.core.embeddings import Embedding, HashedWords
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn
from grupo.core.ranges import PositiveProbability
from grupo.core.requires import Provides
from grupo.core.thought_graph import listed_lines
from grupo.core.thought_memory import ThoughtMemory
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.private_context import (
    answer_in_new_context,
    private_reply,
    task_text,
    with_task_text,
)

THINK = (
    "{task}\n\nReply: {answer}\n\nKnown:\n{thoughts}\n\nWrite each new fact that will be needed"
    " later on a line of its own. Write forget: before a known fact that is no longer true."
)
TURN = "Known:\n{thoughts}\n\n{task}"


@component
class RecalledThoughts:
    """A turn in a new context, with recalled thoughts about earlier turns in place of these turns.

    Before each turn, the policy thinks about the previous turn in a private context. It writes one
    new thought on each line, and names known thoughts to forget. The rollout keeps these lines as
    `Rollout.notes`. The memory is computed from all notes, in order.

    The turn reads the thoughts that are most similar to its observation, the most similar one last.
    The similarity of two texts is the cosine of their vectors, which `embed` computes. Thoughts are
    kept in cells by locality-sensitive hashing (`grupo.core.thought_memory.ThoughtMemory`), and a
    recall compares those in the `probes` cells that are nearest to the observation.

    This strategy does not suit environments in which a later turn needs the whole first
    observation, such as the rules of a game.

    The usage counts lines that the policy wrote (`memory/thoughts`), thoughts that a new one
    replaced (`memory/merged`), thoughts that were removed (`memory/forgotten`) and recalled ones
    (`memory/recalled`). From the second turn on, `memory/no_thought` counts turns without a line of
    the policy, and `memory/nothing_recalled` counts turns without a recalled thought.

    Args:
        count: Largest number of recalled thoughts.
        cells: Number of cells: 1, or an even number: the hash has cells / 2 random directions, and
            each direction and its opposite is a cell. With 1, a recall compares all thoughts.
        probes: Number of cells that a recall reads. With fewer than `cells`, a recall may miss
            similar thoughts.
        cell_size: Largest number of thoughts in a cell. The oldest ones beyond it are forgotten.
        merge_at: Smallest cosine with which a new thought replaces an earlier thought.
        thought_tokens: Largest number of tokens of the thoughts about one turn.
        think_prompt: Prompt of the thoughts about a turn. {task} is the observation of that turn,
            {answer} is its answer, and {thoughts} are the thoughts that are recalled for it.
        turn_prompt: Prompt of a turn with recalled thoughts, with {thoughts} and {task}.
        embed: Computes the vector of a text. `HashedWords` counts words and reads no model.
        role: Role that thinks; "" for the policy itself.
        inner: Generates the answer.

    Raises:
        ConfigError: A prompt lacks a placeholder or has an unknown one; an odd number of cells;
            more probes than cells.
    """

    count: PositiveInt = 4
    cells: PositiveInt = 1
    probes: PositiveInt = 1
    cell_size: PositiveInt = 64
    merge_at: PositiveProbability = 0.9
    thought_tokens: PositiveInt = 48
    think_prompt: str = THINK
    turn_prompt: str = TURN
    embed: Embedding = HashedWords()
    role: str = ""
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        check_field(self, "cells", self.cells == 1 or self.cells % 2 == 0, "1, or an even number")
        check_field(self, "probes", self.probes <= self.cells, f"1 to cells, {self.cells}")
        check_form(
            "RecalledThoughts.think_prompt", self.think_prompt, ("task", "answer", "thoughts")
        )
        check_form("RecalledThoughts.turn_prompt", self.turn_prompt, ("thoughts", "task"))

    @property
    def provides(self) -> Provides:
        """The role whose replies this strategy generates, for the check of the recipe."""
        return Provides(roles=(self.role,) if self.role else ())

    @property
    def thought_tokens_in_prompt(self) -> int:
        """Largest number of tokens of recalled thoughts in one prompt."""
        return self.count * self.thought_tokens

    def memory(self, rollout: Rollout) -> ThoughtMemory:
        """The memory after the notes of a rollout."""
        empty = ThoughtMemory(self.embed, self.cells, self.cell_size, self.merge_at)
        return empty.after(rollout.notes)

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn, memory = len(rollout.turns), self.memory(rollout)
        if rollout.turns:
            notes = await self._notes(actor.fork("think", turn), rollout, memory)
            updated = memory.after(notes)
            _count_changes(memory, updated, len(notes))
            rollout, memory = replace(rollout, notes=(*rollout.notes, *notes)), updated
        task = task_text(observation)
        recalled = self._recalled(memory, task)
        prompt = observation
        if recalled:
            add_private_turn("recalled", recalled)
            prompt = with_task_text(
                observation, fill(self.turn_prompt, {"thoughts": recalled, "task": task})
            )
        elif rollout.turns:
            add_external_usage({"memory/nothing_recalled": 1.0})
        add_external_usage({"memory/recalled": float(len(recalled.splitlines()))})
        answer_actor = actor.fork("answer", turn)
        return await answer_in_new_context(answer_actor, rollout, observation, prompt, self.inner)

    async def _notes(self, actor: Actor, rollout: Rollout, memory: ThoughtMemory) -> list[str]:
        """The policy's notes about the last turn, in a private context."""
        start = max(i for i, (observation, _) in enumerate(rollout.turns) if observation)
        observation = rollout.turns[start][0]
        task = task_text(observation)
        answer = "".join(response.text for _, response in rollout.turns[start:])
        values = {"task": task, "answer": answer, "thoughts": self._recalled(memory, task)}
        prompt = with_task_text(observation, fill(self.think_prompt, values))
        limited = actor.with_stop(max_new_tokens=self.thought_tokens)
        alone = replace(rollout, turns=())
        reply = await private_reply(limited, alone, prompt, role=self.role, label="thoughts")
        return [line for line in listed_lines(reply) if any(map(str.isalnum, line))]

    def _recalled(self, memory: ThoughtMemory, task: str) -> str:
        """The thoughts that are recalled for a text, one on each line, the most similar last."""
        return "\n".join(reversed(memory.recall(task, self.count, self.probes)))


def _count_changes(before: ThoughtMemory, after: ThoughtMemory, num_notes: int) -> None:
    """Add the changes of the memory that the notes about one turn made to the usage."""
    add_external_usage(
        {
            "memory/thoughts": float(num_notes),
            "memory/merged": float(after.merged - before.merged),
            "memory/forgotten": float(after.forgotten - before.forgotten),
            "memory/no_thought": float(not num_notes),
        }
    )


PAPER = Paper(
    title="Think-in-Memory: Recalling and Post-thinking Enable LLMs with Long-Term Memory",
    use="Series of sessions that exceed the context, with facts that later sessions need.",
    tags=("agents", "hints"),
    kind="evaluation",
    catalogue=("think-in-memory",),
    checked=("golden", "run"),
    source=Source(
        "third_party",
        "arXiv:2311.08719, abstract; emergentmind.com/papers/2311.08719, a summary: cells by"
        " locality-sensitive hashing, thoughts as relations of two entities; the kind of"
        " hash is that of the catalogue's row",
    ),
    deviations=(
        "A thought is any line that the policy writes, not a relation of two entities.",
        "The policy thinks about a turn before the next turn, and not at all about the last turn.",
        "Thoughts merge by their cosine; the policy names only the thoughts to forget.",
        "By default the vector of a thought counts its hashed words; no trained model computes it.",
        "All thoughts are in one cell by default, as the hash loses thoughts; a recall may read"
        " several cells.",
    ),
    missing=(
        "Dialogues with people's ratings, on which the paper is evaluated.",
        "A comparison on a pretrained model; docs/answer_time.md has two tasks with such a model.",
    ),
    shown=(
        "tests/core/test_thought_memory.py"
        "::test_each_of_100_random_vectors_in_8_cells_is_recalled_at_rank_1",
        "tests/core/test_thought_memory.py::test_a_merge_of_near_duplicates_leaves_the_later_one",
        "docs/answer_time.md#recalled-thoughts",
    ),
)
