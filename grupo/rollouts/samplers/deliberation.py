"""Deliberation of agents over rules, against an answer from a planted belief."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonNegativeInt, PositiveInt
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt, rollout_with_hidden_hint

DELIBERATOR_ROLE = "deliberator"  # the role of the policy that generates thoughts
DISCUSS = "\n\nRules: {rules}\n\nThoughts: {thoughts}\n\n{agent}"
ANSWER = "\n\nRules: {rules}"
PLANT = "\n\n{belief}"
CRITIC = "Add a thought about the rules that is missing or wrong so far, or write: nothing to add"
Refine = Callable[[Task, Sequence[str]], Sequence[str]]


def drop_repeats(task: Task, thoughts: Sequence[str]) -> Sequence[str]:
    """The thoughts without those that repeat an earlier one, whatever their case and white space.

    >>> drop_repeats(Task("k", "?"), ["No names.", "no  names.", "Refuse."])
    ['No names.', 'Refuse.']
    """
    first: dict[str, str] = {}
    for thought in thoughts:
        first.setdefault(" ".join(thought.lower().split()), thought)
    return list(first.values())


@component
class Deliberation:
    """Two answers to a request: after a deliberation over the rules, and from a planted belief.

    The policy of the role `deliberator`, or the policy itself, speaks for the agents in turn. Each
    adds a thought about the request, the rules and the thoughts so far, or writes `stop`. The
    deliberation ends after `rounds` rounds, or when `quiet` agents in a row wrote `stop`. The
    refined thoughts, in `<think>` tags, precede the first answer, of source "deliberated". The
    second, of source "planted", is generated with a false belief about the rules in its prompt.
    Both are moved behind the task's plain prompt and scored.

    AIDSAFE, Kumarage et al. (arXiv:2505.21784).

    Args:
        agents: Instruction of each agent.
        rules: Column of the rules that apply to the request.
        belief: Column of the false belief.
        rounds: Most rounds, in each of which every agent speaks once.
        stop: Beginning of the text of an agent that has no further remark.
        quiet: Agents in a row without a remark that end the deliberation; 0: all agents.
        refine: From the task and all thoughts to those that are kept.
        discuss: Text behind the prompt of an agent, with {rules}, {thoughts} and {agent}.
        answer: Text behind the prompt of the deliberated answer, with {rules}.
        plant: Text behind the prompt of the planted answer, with {belief}.
        separator: Text between thoughts.
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

    provides = Provides(roles=(DELIBERATOR_ROLE,))

    def __post_init__(self) -> None:
        check_field(self, "agents", bool(self.agents), "one instruction or more")

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.rules, self.belief))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        thoughts = self.refine(task, await self.deliberate(task, env, actor))
        chosen = await self._conclude(task, env, actor.fork("answer"), thoughts)
        planted = append_to_prompt(task, self.plant.format(belief=task.columns[self.belief]))
        rejected = await rollout_with_hidden_hint(task, planted, env, actor.fork("planted"))
        rollouts = [replace(chosen, source="deliberated"), replace(rejected, source="planted")]
        return await score_group(task, env, rollouts)

    async def deliberate(self, task: Task, env: Env, actor: Actor) -> list[str]:
        """The thoughts of all agents, in order, with their repetitions."""
        thoughts: list[str] = []
        silent = 0
        for turn in range(self.rounds * len(self.agents)):
            agent = self.agents[turn % len(self.agents)]
            text = await self._speak(task, env, actor.fork("agent", turn), agent, thoughts)
            silent = silent + 1 if text.startswith(self.stop) else 0
            if not silent:
                thoughts.append(text)
            if silent >= (self.quiet or len(self.agents)):
                break
        return thoughts

    async def _speak(
        self, task: Task, env: Env, actor: Actor, agent: str, thoughts: Sequence[str]
    ) -> str:
        text = self.discuss.format(
            rules=task.columns[self.rules], thoughts=self.separator.join(thoughts), agent=agent
        )
        observation = await initial_observation(append_to_prompt(task, text), env)
        response = await actor(Rollout(role=DELIBERATOR_ROLE), observation)
        return response.text.strip()

    async def _conclude(
        self, task: Task, env: Env, actor: Actor, thoughts: Sequence[str]
    ) -> Rollout:
        """The answer after the thoughts, generated with the rules in the prompt."""
        ruled = append_to_prompt(task, self.answer.format(rules=task.columns[self.rules]))
        observation = await initial_observation(ruled, env)
        text = f"<think>{self.separator.join(thoughts)}</think>"
        started = Rollout().append_turn(
            observation, await actor.prefill_forced(Rollout(), observation, text)
        )
        answered = started.append_turn("", await actor(started, ""))
        rollout = await run_rollout(ruled, env, actor.fork("on"), answered)
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
    missing=("The decomposition of a request into its intentions, before the deliberation.",),
    deviations=(
        "The texts of the prompts are our choice.",
        "The refiner is code: models that judge a thought can be functions of it.",
    ),
    shown=("docs/pipelines_shown.md#aidsafe",),
)
