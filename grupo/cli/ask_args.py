"""The arguments of `grupo ask`: a run or a model that answers, and how its answers are scored."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from grupo.cli.build_recipe import parse_option, reward_terms
from grupo.cli.chosen_defaults import precision_of
from grupo.cli.paths import last_run
from grupo.cli.strategy_option import parse_strategy
from grupo.config.defaults import with_choices
from grupo.config.strategies import check_strategy
from grupo.core.answer_work import AnswerLimitError, limit_answer
from grupo.core.component import to_code
from grupo.core.interfaces import Actor, TurnStrategy, score_group, single_response
from grupo.core.private_turns import PrivateTurn, record_private_turns
from grupo.core.response_use import generation_only
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.envs.single_turn import SingleTurn
from grupo.models.base import Policy
from grupo.models.causal_actor import CausalActor
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.context import context_tokens
from grupo.recipe import Recipe
from grupo.storage.pipeline_dirs import stage_folders
from grupo.toy import quickstart
from grupo.training.resume.load_run import LAST, TRAINED, load_checkpoint, policy_of
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.start_from import with_model
from grupo.util.console import print_error
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from grupo.util.json_text import check_unicode
from grupo.util.limits import PROMPT_SIZE
from grupo.util.rng import derive_key
from grupo.util.run_files import RECIPE_JSON
from grupo.util.user_paths import parse_path

OnText = Callable[[str], None]


@dataclass(frozen=True)
class AskArgs:
    """Arguments of `grupo ask`.

    Args:
        source: Folder of a run, or a model: folder, .gguf file, hub name, `RUN@best`.
        system: System message; "" for none.
        plain: The model continues the prompt as text, without its chat template.
        max_new_tokens: Largest length of an answer in tokens; 0: that of the run, or 256.
        temperature: Of the token distribution; 0 is greedy; None: that of the run, or 1.
        seed: Number from which the random streams are derived.
        rewards: Reward functions by address, which score the answers.
        columns: Columns of the task that the reward functions read: `NAME=VALUE`.
        checkpoint: Checkpoint of the run: "last", "best" or the number of a step.
        weights: Weights of the checkpoint: "trained" or "ema".
        strategy: The turn strategy as the user spells it; "" for a single response.
    """

    source: str
    system: str = ""
    plain: bool = False
    max_new_tokens: int = 0
    temperature: float | None = None
    seed: int = 0
    rewards: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    checkpoint: str = LAST
    weights: str = TRAINED
    strategy: str = ""

    def open(self) -> "Conversation":
        """Load the policy for a conversation that has not begun."""
        if self.plain and self.system:
            raise ConfigError("system: the text of --plain has no system message. Leave one out.")
        strategy = parse_strategy(self.strategy) if self.strategy else single_response
        columns = dict(parse_option(_column, "column", text) for text in self.columns)
        if columns and not self.rewards:
            raise ConfigError("column: no reward reads it. Add --reward file.py:function.")
        env = SingleTurn(reward_terms(self.rewards)) if self.rewards else None
        policy, name, recipe = self.load()
        check_strategy("strategy", strategy, recipe)
        if not isinstance(policy, CausalPolicy):
            kind = type(policy).__name__.removesuffix("Policy")
            raise ConfigError(f"run: {self.source!r} is a {kind}. Allowed: a language model.")
        with generation_only():  # no activations are kept for an update
            actor: Actor = policy.actor(derive_key(self.seed, "ask"))
        if self.temperature == 0:
            actor = actor.with_sampling(top_k=1)
        is_chat = bool(policy.chat_tokenizer.tokenizer.chat_template) and not self.plain
        if self.system and not is_chat:
            raise ConfigError(f"system: {self.source!r} has no chat template. Leave it out.")
        # a model, and a run whose policy renders texts, have texts as prompts in training
        has_text_prompts = not self._is_run or policy.spec.apply_chat_template
        return Conversation(
            *(policy, actor, name, self.system, is_chat, has_text_prompts, env, columns, strategy)
        )

    @property
    def _folder(self) -> Path:
        return parse_option(parse_path, "run", self.source)

    @property
    def _is_run(self) -> bool:
        """True for the folder of a run or a pipeline, False for a model."""
        return (self._folder / RECIPE_JSON).is_file() or bool(stage_folders(self._folder))

    def load(self) -> tuple[Policy, str, Recipe]:
        """The policy with its limits and sampling, its name for the user, and its recipe."""
        if self._is_run:
            run = last_run(self._folder)
            recipe = self._with_options(RunFolder.open(run).recipe)
            loaded = load_checkpoint(run, recipe, self.checkpoint)
            policy = policy_of(recipe, loaded, self.weights)
            return policy, f"{run}, step {loaded.step}", recipe
        if (self.checkpoint, self.weights) != (LAST, TRAINED):
            raise ConfigError(
                f"checkpoint and weights are of a run, and {self.source!r} is none. Allowed: a"
                " run's folder."
            )
        recipe = with_model(quickstart.RECIPE.replace(policy=CausalLM(self.source)), self.source)
        choices = precision_of(str(recipe.policy.model))
        for choice in choices:
            print_error(str(choice))
        recipe = self._with_options(with_choices(recipe, choices))
        return recipe.policy.build(), self.source, recipe

    def _with_options(self, recipe: Recipe) -> Recipe:
        """The recipe with the chosen limits, whose policy generates in this process."""
        policy: Any = recipe.policy
        if getattr(policy, "engine", None):
            policy = replace(policy, engine=None)
        if self.max_new_tokens:
            policy = replace(policy, max_new_tokens=self.max_new_tokens)
        if self.temperature:
            policy = replace(
                policy, sampling=replace(policy.sampling, temperature=self.temperature)
            )
        return recipe.replace(policy=policy)


@dataclass
class Conversation:
    """A conversation with a policy, whose earlier turns are kept as the tokens that it generated.

    Args:
        policy: The language model.
        actor: Its answers, with the chosen sampling.
        name: The policy for the user: the run with its step, or the model.
        system: System message; "" for none.
        is_chat: Prompts are messages of the user, rendered by the chat template.
        has_text_prompts: Reward functions get prompt and answers as texts, and not as messages.
        env: Scores the answers; None: they are not scored.
        columns: Columns of the task that reward functions read.
        strategy: How a prompt is answered.
        rollout: The turns so far.
        private_turns: What was generated on the way to each of the last answers.
        tokens: Numbers of tokens generated and read for the last answers, by name.
    """

    policy: CausalPolicy
    actor: Actor
    name: str
    system: str = ""
    is_chat: bool = True
    has_text_prompts: bool = False
    env: SingleTurn | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    strategy: TurnStrategy = single_response
    rollout: Rollout = Rollout()
    private_turns: Sequence[Sequence[PrivateTurn]] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)

    def answers(self, prompt: str, count: int = 1, on_text: OnText | None = None) -> list[Rollout]:
        """Independent answers to the next prompt, each a rollout with the turns so far.

        Args:
            prompt: The user's text.
            count: Number of answers.
            on_text: Receives the text of the answer so far, if there is one answer, which is a
                single response.
        """
        observation = self._observation(prompt)
        self._check_room(observation)
        actors = [self.actor.fork(len(self.rollout.turns), i) for i in range(count)]
        is_streamed = on_text and count == 1 and self.strategy is single_response
        if on_text and is_streamed and isinstance(actors[0], CausalActor):
            actors = [actors[0].streaming(on_text)]
        before = self._all_tokens()
        rollouts = list(run_coroutine(self._answer(prompt, observation, actors)).rollouts)
        self.tokens = {name: count - before[name] for name, count in self._all_tokens().items()}
        return rollouts

    def _all_tokens(self) -> dict[str, int]:
        """Numbers of tokens generated and read since the conversation was opened."""
        actor = self.actor
        counts = {"generated": actor.generated_tokens, "read": actor.read_tokens}
        return {name: sum(by_role.values()) for name, by_role in counts.items()}

    async def _answer(
        self, prompt: str, observation: Observation, actors: Sequence[Actor]
    ) -> Group:
        """The answers of the actors, scored if there are reward functions."""
        answered = await asyncio.gather(*(self._turn(actor, observation) for actor in actors))
        rollouts = [rollout for rollout, _ in answered]
        self.private_turns = [turns for _, turns in answered]
        scored_prompt = prompt if self.has_text_prompts else observation
        task = Task("ask", scored_prompt, self.columns.get("answer"), columns=self.columns)
        if self.env is None:
            return Group(task, tuple(rollouts))
        return await score_group(task, self.env, rollouts)

    async def _turn(
        self, actor: Actor, observation: Observation
    ) -> tuple[Rollout, list[PrivateTurn]]:
        """The rollout after the turn, and what was generated on the way."""
        try:
            with record_private_turns() as private_turns, limit_answer():
                rollout = await self.strategy(actor, self.rollout, observation)
        except AnswerLimitError as error:
            raise ConfigError(f"strategy: {to_code(self.strategy)} {error}") from error
        return rollout, private_turns

    def _observation(self, prompt: str) -> Observation:
        """The prompt as the policy reads it."""
        if not self.is_chat:
            return prompt
        message = {"role": "user", "content": prompt}
        if self.system and not self.rollout.turns:
            return ({"role": "system", "content": self.system}, message)
        return (message,)

    def _check_room(self, observation: Observation) -> None:
        """Raise `ConfigError` if the context has no room for an answer."""
        known = len(context_tokens(self.rollout)) if self.rollout.turns else 0
        length = known + len(self.policy.encode_observation(self.rollout, observation))
        limit = self.policy.context_length
        if length >= limit:
            raise ConfigError(
                f"prompt: it has {length} tokens with the conversation so far. Allowed: fewer than"
                f" {limit}, the context length of the model."
            )


def _column(text: str) -> tuple[str, str]:
    """Name and value of a column."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ConfigError(f"{text!r} has no value. Allowed: NAME=VALUE, as in answer=42.")
    return name, value


def read_prompt(text: str, stdin: Any) -> str:
    """The prompt of the command line; "-" is read from standard input."""
    most = PROMPT_SIZE.maximum
    prompt = checked_text(lambda: stdin.read(most + 1) if text == "-" else text)
    if len(prompt) > most:
        raise ConfigError(f"prompt: standard input has more. Allowed: {PROMPT_SIZE.allowed}.")
    if not prompt.strip():
        raise ConfigError(
            'prompt: it is empty. Allowed: a text, "-" for standard input, or --chat.'
        )
    return prompt


def checked_text(read: Callable[[], str]) -> str:
    """The text that a function reads; raises `ConfigError` for bytes that are no UTF-8."""
    try:
        text = read()
        check_unicode(text)
    except ValueError as error:  # a UnicodeDecodeError, or half of a surrogate pair
        raise ConfigError(f"prompt: it is no text in UTF-8: {error}. Allowed: UTF-8.") from error
    return text
