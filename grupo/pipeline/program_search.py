"""Program search: the policy writes programs, and the one with the highest score is kept.

A program is a text that says how all tasks of a kind are solved: pseudo-code, rules, an
instruction. Its score is the mean reward of the answers that the policy gives with it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from grupo.core.forms import fill, placeholders
from grupo.core.interfaces import Actor, EnvSpec
from grupo.core.paper import Paper, Source
from grupo.core.response_use import generation_only
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.core.usage import count_external_usage
from grupo.core.validation import PromptLimit
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import exchange_json, sum_counts
from grupo.distributed.phase import Phase
from grupo.pipeline.data_stage import SamplingInputs
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import sample_groups
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns.private_context import task_text, with_task_text
from grupo.rollouts.turns.with_program import LoadedProgram
from grupo.util.exit_codes import EXIT_FAILED, CommandError
from grupo.util.rng import derive_key

NO_ROOM = "the program leaves no room for an answer"  # `problem` of a `ScoredProgram`


class NoProgramError(CommandError):
    """None of the programs that the policy wrote has a score."""

    exit_code = EXIT_FAILED


@dataclass(frozen=True)
class ScoredProgram:
    """A program, and the rewards of the answers that the policy gave with it.

    Args:
        text: The program.
        score: Mean reward of the answers that could be scored; None if there is none.
        num_scored: Number of these answers.
        problem: Why the program was not tried, or the error of its first failed answer; "" if all
            answers were scored.
    """

    text: str
    score: float | None = None
    num_scored: int = 0
    problem: str = ""


@dataclass(frozen=True)
class ProgramSearch:
    """The programs of a search, and what the search costs.

    Args:
        programs: The different programs.
        chosen: Index of the one with the highest score.
        num_empty: Number of times that the policy wrote no program.
        num_repeated: Number of times that it wrote a program again.
        generated: Number of generated tokens by role, for programs and for answers.
        read: Number of read tokens by role.
        usage: Calls of other models, and counts of choices within a strategy, by name.
    """

    programs: Sequence[ScoredProgram]
    chosen: int
    num_empty: int
    num_repeated: int
    generated: Mapping[str, int]
    read: Mapping[str, int]
    usage: Mapping[str, float]


@dataclass(frozen=True)
class WritingEnv:
    """The environment in which a program is written for a task; nothing is scored.

    Args:
        form: Prompt with {task}, and possibly {answer}.
    """

    form: str

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if rollout.turns:
            return None
        values = {"task": task_text(task.prompt), "answer": str(task.reference_answer)}
        return with_task_text(task.prompt, fill(self.form, values))

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        return [RewardResult(0.0)] * len(rollouts)


def search_programs(
    recipe: Recipe,
    inputs: SamplingInputs,
    *,
    num_programs: int,
    write: str,
    form: str,
    ranks: Ranks,
) -> ProgramSearch:
    """Write programs for the first tasks, try each on all other tasks, and choose one.

    Answers with a program are greedy.

    Args:
        recipe: Its environment scores the answers.
        inputs: The policy, and the tasks: those of the programs, then those of the answers.
        num_programs: Number of programs that are written, each for another task.
        write: Prompt that asks for a program, with {task}, and possibly {answer}.
        form: Prompt of an answer, with {program} and {task}.
        ranks: The processes that share the answers.

    Raises:
        NoProgramError: No program has a score.
    """
    written_for, tried_on = inputs.tasks[:num_programs], inputs.tasks[num_programs:]
    with generation_only():  # an actor made here keeps no activations for an update
        actor = inputs.policy.actor(derive_key(recipe.seed, "programs"))
    with count_external_usage() as usage:
        texts = _written_programs(actor.fork("write"), written_for, write, ranks)
        different = [text for text in dict.fromkeys(texts) if text]
        greedy = actor.fork("try").with_sampling(top_k=1)
        limit = inputs.policy.prompt_limit
        programs = [
            ScoredProgram(text, problem=NO_ROOM)
            if limit and not _fits(limit, LoadedProgram(text, form), tried_on)
            else _scored_program(greedy, recipe.env, tried_on, LoadedProgram(text, form), ranks)
            for text in different
        ]
    own = [actor.generated_tokens, actor.read_tokens, usage]
    parts = exchange_json(ranks, own, Phase.ANSWERS_COLLECTED, "generate")
    generated, read, all_usage = (sum_counts(counts) for counts in zip(*parts, strict=True))
    num_empty = texts.count("")
    return ProgramSearch(
        programs,
        best_program(programs),
        num_empty,
        len(texts) - num_empty - len(programs),
        generated,
        read,
        all_usage,
    )


def _written_programs(
    actor: Actor, tasks: Sequence[Task], form: str, ranks: Ranks
) -> Sequence[str]:
    """The program that the policy writes for each task, without white space around it."""
    groups = sample_groups(actor, WritingEnv(form), _single(tasks), GroupSampler(1), ranks)
    return [group.rollouts[0].text.strip() for group in groups]


def _fits(limit: PromptLimit, program: LoadedProgram, tasks: Sequence[Task]) -> bool:
    """Whether a program leaves room for an answer to each task."""
    prompts = (replace(task, prompt=program.prompt(task.prompt)) for task in tasks)
    return not any(limit.describe_excess(task) for task in prompts)


def _scored_program(
    actor: Actor, env: EnvSpec, tasks: Sequence[Task], program: LoadedProgram, ranks: Ranks
) -> ScoredProgram:
    """A program with the mean reward of the answers to all tasks."""
    groups = sample_groups(actor, env, _single(tasks), GroupSampler(1, program), ranks)
    rollouts = [group.rollouts[0] for group in groups]
    rewards = [rollout.reward for rollout in rollouts if not rollout.error]
    problem = next((rollout.error for rollout in rollouts if rollout.error), "")
    return ScoredProgram(
        program.program, fmean(rewards) if rewards else None, len(rewards), problem
    )


def _single(tasks: Sequence[Task]) -> list[Task]:
    return [replace(task, group_size=1) for task in tasks]


def best_program(programs: Sequence[ScoredProgram]) -> int:
    """The index of the program with the highest score.

    Of several programs with the highest score, the one with the most scored answers wins, then the
    shortest one, then the first.

    Raises:
        NoProgramError: No program has a score.

    >>> scores = {"first word": 0.5, "last word": 0.9, "reverse": 0.9}
    >>> best_program([ScoredProgram(text, score, 50) for text, score in scores.items()])
    2
    """
    scored = [i for i, program in enumerate(programs) if program.score is not None]
    if not scored:
        problems = Counter(program.problem for program in programs)
        reasons = "; ".join(f"{problem} ({n})" for problem, n in problems.most_common(3))
        raise NoProgramError(
            f"None of {len(programs)} different programs has a score: "
            f"{reasons or 'the policy wrote none'}."
        )

    def rank(i: int) -> tuple[float, int, int, int]:
        program = programs[i]
        return -(program.score or 0.0), -program.num_scored, len(program.text), i

    return min(scored, key=rank)


def uses_answers(write: str) -> bool:
    """Whether a prompt that asks for a program shows the reference answer of its task."""
    return "answer" in placeholders(write)


PAPER = Paper(
    title="Learning to Reason via Program Generation, Emulation, and Search",
    use="Many tasks of one kind, some of them with reference answers, and a policy that follows"
    " written steps.",
    tags=("hints", "exploration"),
    kind="evaluation",
    catalogue=("cogex",),
    checked=("golden", "run"),
    source=Source("abstract", "arXiv:2404.01019, abstract; the catalogue's row"),
    deviations=(
        "The texts of the forms, and the tie rule, are our choice.",
        "Programs are not scored on the tasks that they were written for.",
    ),
    missing=(
        "Their training data and models: a policy is trained to write and to emulate programs by"
        " the recipe, on its own tasks.",
        "The vote of several kept programs.",
        "A comparison on a pretrained model: docs/answer_time.md has one short search.",
    ),
    shown=(
        "tests/pipeline/test_program_search.py"
        "::test_the_best_of_five_rules_is_chosen_in_more_than_99_percent_of_seeds",
        "docs/answer_time.md#one-program-for-all-tasks",
    ),
)
