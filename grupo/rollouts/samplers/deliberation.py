"""Pairs of an answer after a deliberation over rules, and an answer with a planted false belief."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonNegativeInt, PositiveInt
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt, rollout_with_removed_hint

DELIBERATOR_ROLE = "deliberator"  # the role of the policy that generates thoughts
DISCUSS = "\n\nRules: {rules}\n\nThoughts: {thoughts}\n\n{agent}"
ANSWER = "\n\nRules: {rules}"
PLANT = "\n\n{belief}"
CRITIC = "Add a thought about the rules that is missing or wrong so far, or write: nothing to add"
Refine = Callable[[Task, Sequence[str]], Sequence[str]]  # (task, thoughts) -> kept thoughts


def drop_repeats(task: Task, thoughts: Sequence[str]) -> Sequence[str]:
    """The thoughts without repetitions. Case and white space do not matter for the comparison.

    >>> drop_repeats(Task("k", "?"), ["No names.", "no  names.", "Refuse."])
    ['No names.', 'Refuse.']
    """
    first: dict[str, str] = {}
    for thought in thoughts:
        first.setdefault(" ".join(thought.lower().split()), thought)
    return list(first.values())


@component
class Deliberation:
    """A group of two answers: one after a deliberation over rules, one with a planted false belief.

    In the deliberation, agents take turns. The policy of the role `deliberator`, or the policy
    itself, generates the text of each agent: a thought about the request, the rules and the
    thoughts so far, or `stop`. With `intents`, the first thoughts name what the request may intend,
    a line each. The deliberation ends after `rounds` rounds, or when `quiet` agents in a row wrote
    `stop`. The first answer follows the refined thoughts, which are forced in
    `<think>` tags. Its source is "deliberated". The second answer is generated with a false belief
    about the rules in its prompt, and its source is "planted". After generation, the prompts of
    both are replaced by the task's own prompt.

    AIDSAFE, Kumarage et al. (arXiv:2505.21784).

    Args:
        agents: Instruction of each agent.
        rules: Column of the rules that apply to the request.
        belief: Column of the false belief.
        rounds: Largest number of rounds; each agent has one turn in a round.
        stop: Beginning of the text of an agent that has no further thought.
        quiet: Number of agents in a row whose `stop` ends the deliberation; 0 stands for all.
        refine: Returns the thoughts that are kept, from the task and all thoughts.
        discuss: Text at the end of an agent's prompt, with {rules}, {thoughts} and {agent}.
        answer: Text at the end of the prompt of the deliberated answer, with {rules}.
        plant: Text at the end of the prompt of the planted answer, with {belief}.
        separator: Text between thoughts.
        intents: Text at the end of the prompt, with {rules}, to which the policy of the role
            replies what the request intends; "" begins without.
    """

    agents: tuple[str, ...] = (CRITIC, CRITIC)
    rules: str = "rules"
    belief: str = "belief"
    rounds: PositiveInt = 3
    stop: str = "nothing to add"
    quiet: NonNegativeInt = 0
    refine: Refine = drop_repeats
    discuss: str = DISCUSS
    answer: str = ANSWER
    plant: str = PLANT
    separator: str = "\n"
    intents: str = ""

    provides = Provides(roles=(DELIBERATOR_ROLE,))

    def __post_init__(self) -> None:
        check_field(self, "agents", bool(self.agents), "one instruction or more")

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.rules, self.belief))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        thoughts = self.refine(task, await self.deliberate(task, env, actor))
        deliberated = await self._conclude(task, env, actor.fork("answer"), thoughts)
        belief_task = append_to_prompt(task, self.plant.format(belief=task.columns[self.belief]))
        planted = await rollout_with_removed_hint(task, belief_task, env, actor.fork("planted"))
        rollouts = [replace(deliberated, source="deliberated"), replace(planted, source="planted")]
        return await score_group(task, env, rollouts)

    async def deliberate(self, task: Task, env: Env, actor: Actor) -> list[str]:
        """The intentions and the thoughts of all agents, in order, with repetitions."""
        thoughts = await self._intentions(task, env, actor) if self.intents else []
        num_stops = 0  # agents in a row that wrote `stop`
        for turn in range(self.rounds * len(self.agents)):
            instruction = self.agents[turn % len(self.agents)]
            agent = actor.fork("agent", turn)
            text = await self._next_text(task, env, agent, instruction, thoughts)
            num_stops = num_stops + 1 if text.startswith(self.stop) else 0
            if not num_stops:
                thoughts.append(text)
            if num_stops >= (self.quiet or len(self.agents)):
                break
        return thoughts

    async def _intentions(self, task: Task, env: Env, actor: Actor) -> list[str]:
        """Possible intentions of the request, one per line of the reply."""
        suffix = self.intents.format(rules=task.columns[self.rules])
        text = await self._reply(task, env, actor.fork("intents"), suffix)
        return [line.strip() for line in text.splitlines() if line.strip()]

    async def _next_text(
        self, task: Task, env: Env, actor: Actor, instruction: str, thoughts: Sequence[str]
    ) -> str:
        """The text of the next agent."""
        fields = {"rules": task.columns[self.rules], "thoughts": self.separator.join(thoughts)}
        return await self._reply(task, env, actor, self.discuss.format(**fields, agent=instruction))

    async def _reply(self, task: Task, env: Env, actor: Actor, suffix: str) -> str:
        """The text of the deliberator behind the prompt and a suffix."""
        observation = await initial_observation(append_to_prompt(task, suffix), env)
        response = await actor(Rollout(role=DELIBERATOR_ROLE), observation)
        return response.text.strip()

    async def _conclude(
        self, task: Task, env: Env, actor: Actor, thoughts: Sequence[str]
    ) -> Rollout:
        """The answer after the thoughts. It is generated with the rules in the prompt."""
        rules_task = append_to_prompt(task, self.answer.format(rules=task.columns[self.rules]))
        observation = await initial_observation(rules_task, env)
        text = f"<think>{self.separator.join(thoughts)}</think>"
        forced = await actor.prefill_forced(Rollout(), observation, text)
        with_thoughts = Rollout().append_turn(observation, forced)
        answered = with_thoughts.append_turn("", await actor(with_thoughts, ""))
        rollout = await run_rollout(rules_task, env, actor.fork("on"), answered)
        return actor.with_prompt(rollout, await initial_observation(task, env))


PAPER = Paper(
    title="Towards Safety Reasoning in LLMs: AI-agentic Deliberation for Policy-embedded CoT Data "
    "Creation",
    use="There are written rules for answers, and no chains of thought that apply them.",
    tags=("preferences", "sft", "hints"),
    kind="sampler",
    catalogue=("aidsafe",),
    checked=("golden", "run"),
    source=Source(
        "abstract", "arXiv:2505.21784, abstract; two summaries of the paper; the catalogue's row"
    ),
    missing=(
        "A run on a pretrained model, with rules in words; `intents` was run by a script alone.",
    ),
    deviations=(
        "The texts of the prompts are our choice.",
        "The refiner is a function, which may call a model that judges thoughts.",
    ),
    shown=("docs/pipelines_shown.md#aidsafe",),
)
