"""ReAd: a value head rejects actions before execution. Zhang et al., 2024, arXiv:2405.14314."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn, reject_answers
from grupo.core.ranges import Calls, Finite, NonEmptyString
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.best_of import NOT_SAMPLED, mark_not_sampled
from grupo.rollouts.turns.choices import text_since
from grupo.rollouts.turns.private_context import replace_answer, task_text, with_task_text

REVISION = (
    "{task}\n\nYou want to do: {answer}\n\nIts advantage is {advantage}: it is expected to change"
    " the result by that much, which is not enough. Do something else."
)


@component
class AdvantageRevision:
    """A turn that the policy revises while a value head predicts a small advantage for its action.

    Here an action is the whole answer of a turn. Its advantage is A = Q(s, a) - Q(s): the head's
    output after the action minus the output before the action. Several agents may act one after
    another and read each other's actions. A is then the sequential advantage
    Q(s, a_1..a_i) - Q(s, a_1..a_(i-1)). If one response has the actions of all agents, A is the sum
    of their advantages.

    While A is below `threshold`, the policy answers `revision_prompt`, which states A, with another
    action. A rejected action is not executed. The turn ends with the first action that reaches the
    threshold. After `max_revisions` revisions, it ends with the action of the largest advantage.

    The head evaluates a revision as an answer to the observation. The revision is marked as
    `off_context`, because it was generated after the prompt. The head is read before the last token
    of an action, because it is not trained on the state after that token. For an action of one
    token, it is read after this token. The usage `advantage_revision/sent_back` counts revisions,
    and `advantage_revision/at_limit` counts turns that end below the threshold.

    Args:
        head: Name of a head of the policy that predicts returns, such as "value".
        threshold: Smallest advantage of an accepted action, in units of the return.
        max_revisions: Largest number of revisions.
        revision_prompt: Prompt of a revision, with {task}, {answer} and {advantage}.
        inner: Generates an action.

    Raises:
        ConfigError: `threshold` is not finite, or `revision_prompt` lacks a placeholder. When the
            turn is taken: the policy has no such head.
    """

    head: NonEmptyString = "value"
    threshold: Finite = 0.0
    max_revisions: Calls = 3
    revision_prompt: str = REVISION
    inner: TurnStrategy = single_response

    provides = NOT_SAMPLED

    def __post_init__(self) -> None:
        check_form(
            "AdvantageRevision.revision_prompt",
            self.revision_prompt,
            ("task", "answer", "advantage"),
        )

    @property
    def read_heads(self) -> tuple[str, ...]:
        """The name of the head."""
        return (self.head,)

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn = len(rollout.turns)
        first = await self.inner(actor.fork("answer", turn), rollout, observation)
        if not first.last_response.items:  # the context has no room for an action
            return mark_not_sampled(rollout, first)
        value_before = await self._value_before(actor, rollout, first)
        actions, advantages = [first], [await self._value_after(actor, first) - value_before]
        while advantages[-1] < self.threshold and len(actions) <= self.max_revisions:
            values = {
                "task": task_text(observation),
                "answer": text_since(rollout, actions[-1]),
                "advantage": f"{advantages[-1]:.2f}",
            }
            prompt = with_task_text(observation, fill(self.revision_prompt, values))
            revision_actor = actor.fork("revision", turn, len(actions))
            revision = await self.inner(revision_actor, rollout, prompt)
            if not revision.last_response.items:  # the context has no room for a revision
                break
            actions.append(replace_answer(rollout, first, revision))
            advantages.append(await self._value_after(actor, actions[-1]) - value_before)
        best = max(range(len(actions)), key=advantages.__getitem__)
        self._record([text_since(rollout, action) for action in actions], advantages, best)
        return mark_not_sampled(rollout, actions[best])

    def _record(self, texts: list[str], advantages: list[float], best: int) -> None:
        """Record the actions as private turns, and the usage of the turn."""
        for i, (text, advantage) in enumerate(zip(texts, advantages, strict=True), start=1):
            add_private_turn(f"action {i}, advantage {advantage:.2f}", text)
        reject_answers([*texts[:best], *texts[best + 1 :]])
        is_below = advantages[best] < self.threshold
        counts = {"sent_back": len(texts) - 1, "at_limit": is_below}
        add_external_usage({f"advantage_revision/{name}": float(x) for name, x in counts.items()})

    async def _value_before(self, actor: Actor, before: Rollout, after: Rollout) -> float:
        """The head's output after the observation, before the first token of the action."""
        first_response = replace(after, turns=after.turns[: len(before.turns) + 1])
        return await actor.predict_head(actor.truncate(first_response, 0), self.head)

    async def _value_after(self, actor: Actor, rollout: Rollout) -> float:
        """The head's output after the action."""
        count = len(rollout.last_response.items)
        state = actor.truncate(rollout, count - 1) if count > 1 else rollout
        return await actor.predict_head(state, self.head)


PAPER = Paper(
    title="Towards Efficient LLM Grounding for Embodied Multi-Agent Collaboration",
    use="Agents act one after another, and a critic was trained on logs of their plans.",
    tags=("critic", "agents"),
    kind="evaluation",
    catalogue=("read-embodied",),
    checked=("golden", "run"),
    source=Source("abstract", "arXiv:2405.14314, abstract; the catalogue's row"),
    missing=(
        "Overcooked-AI and RoCoBench: the recipe has a corridor for two robots.",
        "The proof for several agents of advantage-weighted regression.",
    ),
    deviations=(
        "The critic is a value head that reads the state and earlier agents' actions as text.",
        "After the last revision the action of largest advantage is taken.",
        "The text of the prompt is our choice.",
    ),
    shown=(
        "tests/rollouts/turns/test_advantage_revision.py"
        "::test_the_second_agents_action_of_advantage_minus_0_3_is_sent_back",
        "docs/agents.md#a-critic-before-the-action",
    ),
)
