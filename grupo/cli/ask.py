"""The command `grupo ask`: a run or a model answers a prompt."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from math import exp, isnan
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from grupo.cli.inspect import CheckpointOption, JsonOption, WeightsOption
from grupo.cli.options import RewardOption
from grupo.util.console import out, print_error, print_line
from grupo.util.errors import ConfigError
from grupo.util.terminal_text import escape_controls

if TYPE_CHECKING:
    from rich.table import Table

    from grupo.cli.ask_args import Conversation
    from grupo.core.types import Rollout

RESET = "/reset"
MAX_SEED = 2**32 - 1

SourceArgument = Annotated[
    str, Argument(metavar="RUN_OR_MODEL", help="Folder of a run; or a model, as for --model.")
]
PromptArgument = Annotated[str, Argument(help='The prompt; "-" is read from standard input.')]
SystemOption = Annotated[str, Option(help="System message.")]
AttemptsOption = Annotated[int, Option(min=1, help="Independent answers to the prompt.")]
ColumnOption = Annotated[
    list[str] | None,
    Option(metavar="NAME=VALUE", help="Column that the reward reads, as answer=42; repeatable."),
]
TokensOption = Annotated[
    int | None,
    Option(min=1, help="Most tokens of an answer; by default those of the run, or 256."),
]
TemperatureOption = Annotated[
    float | None, Option(min=0, help="0 is greedy; by default that of the run, or 1.")
]
SeedOption = Annotated[int, Option(min=0, max=MAX_SEED, help="Seed of the random choices.")]
ChatOption = Annotated[bool, Option("--chat", help="Hold a conversation, a line each turn.")]
PlainOption = Annotated[
    bool, Option("--plain", help="Continue the prompt as text, without the chat template.")
]
StrategyOption = Annotated[
    str,
    Option(
        help="How the prompt is answered: single, Vote(16), Revised(max_revisions=3), file.py:name."
    ),
]
LogprobsOption = Annotated[
    bool, Option("--logprobs", help="Print each token with its log-probability.")
]


def ask(
    source: SourceArgument,
    prompt: PromptArgument = "",
    system: SystemOption = "",
    attempts: AttemptsOption = 1,
    reward: RewardOption = None,
    column: ColumnOption = None,
    max_new_tokens: TokensOption = None,
    temperature: TemperatureOption = None,
    seed: SeedOption = 0,
    chat: ChatOption = False,
    plain: PlainOption = False,
    strategy: StrategyOption = "",
    logprobs: LogprobsOption = False,
    checkpoint: CheckpointOption = "last",
    weights: WeightsOption = "trained",
    as_json: JsonOption = False,
) -> None:
    """Ask a run or a model: the answer as it is generated, or several with their rewards."""
    if chat and (prompt or attempts > 1 or as_json):
        raise ConfigError("chat: a conversation has no prompt, attempts or JSON. Leave these out.")
    from grupo.cli.ask_args import AskArgs, read_prompt

    text = "" if chat else read_prompt(prompt, sys.stdin)
    conversation = AskArgs(
        source,
        system,
        plain,
        max_new_tokens or 0,
        temperature,
        seed,
        tuple(reward or ()),
        tuple(column or ()),
        checkpoint,
        weights,
        strategy,
    ).open()
    print_error(f"{conversation.name}")
    if chat:
        hold_conversation(conversation, logprobs=logprobs)
    elif as_json:
        print_json(conversation, conversation.answers(text, attempts), has_strategy=bool(strategy))
    elif attempts == 1:
        print_streamed(conversation, text, logprobs=logprobs)
    else:
        print_answers(conversation, conversation.answers(text, attempts), logprobs=logprobs)


def print_json(
    conversation: "Conversation", rollouts: Sequence["Rollout"], *, has_strategy: bool
) -> None:
    """Print all answers as one line of JSON."""
    print_line(json.dumps(answers_data(conversation, rollouts, has_strategy=has_strategy)))


def print_answers(
    conversation: "Conversation", rollouts: Sequence["Rollout"], *, logprobs: bool
) -> None:
    """Print several answers in a table, how many are equal, and their tokens."""
    out.print(answers_table(rollouts))
    print_line(agreement(rollouts))
    print_error(tokens_line(conversation))
    for rollout in rollouts if logprobs else ():
        out.print(logprobs_table(conversation, rollout))


def print_streamed(conversation: "Conversation", prompt: str, *, logprobs: bool) -> "Rollout":
    """Print an answer while it is generated, and its length and reward on standard error."""
    printed = ""

    def on_text(text: str) -> None:
        nonlocal printed
        sys.stdout.write(escape_controls(text[len(printed) :]))
        sys.stdout.flush()
        printed = text

    (rollout,) = conversation.answers(prompt, on_text=on_text)
    for turn in conversation.private_turns[0]:
        print_error(f"[{turn.label}] {escape_controls(turn.text)}")
    on_text(rollout.last_response.text)
    print_line("")
    print_error(describe(rollout))
    if conversation.private_turns[0]:
        print_error(tokens_line(conversation))
    if logprobs:
        out.print(logprobs_table(conversation, rollout))
    return rollout


def hold_conversation(conversation: "Conversation", *, logprobs: bool) -> None:
    """Answer the lines of standard input until it ends; Ctrl-C stops an answer."""
    from grupo.cli.ask_args import checked_text
    from grupo.core.types import Rollout

    print_error(f"{RESET} begins anew, Ctrl-D ends.")
    while True:
        try:
            line = checked_text(lambda: input("> "))
        except (EOFError, KeyboardInterrupt):
            print_line("")
            return
        if line.strip() == RESET:
            conversation.rollout = Rollout()
        elif line.strip():
            try:
                conversation.rollout = print_streamed(conversation, line, logprobs=logprobs)
            except KeyboardInterrupt:
                print_line("")
                print_error("Stopped: the conversation goes on without this question.")
            except ConfigError as error:
                print_error(f"{error} {RESET} begins anew.")


def tokens_line(conversation: "Conversation") -> str:
    """The tokens of the last answers with everything on the way to them."""
    tokens = conversation.tokens
    return f"in all {tokens['generated']:,} tokens generated, {tokens['read']:,} read"


def describe(rollout: "Rollout") -> str:
    """Length, end and reward of the last answer in words."""
    answer = rollout.last_response
    tokens = len(answer.items)
    ends = {"end": "its end token", "stop": "a stop string", "length": "the limit of tokens"}
    text = f"{tokens} token{'s' * (tokens != 1)}, ended by {ends[answer.finish_reason]}"
    score = _score(rollout)
    return f"{text}; {score}" if score else text


def _score(rollout: "Rollout") -> str:
    """The reward with its terms, or why there is none; "" without reward functions."""
    if rollout.error:
        return f"reward failed: {rollout.error}"
    if isnan(rollout.reward):
        return ""
    terms = ", ".join(f"{name} {value:g}" for name, value in rollout.reward_terms.items())
    return f"reward {rollout.reward:g} ({terms})"


def answers_data(
    conversation: "Conversation", rollouts: Sequence["Rollout"], *, has_strategy: bool
) -> dict[str, Any]:
    """All answers for `--json`, with their tokens and the private turns of a strategy."""
    answers = [answer_data(rollout) for rollout in rollouts]
    if has_strategy:
        for answer, turns in zip(answers, conversation.private_turns, strict=True):
            answer["private"] = [turn._asdict() for turn in turns]
    return {"source": conversation.name, "answers": answers, "tokens": conversation.tokens}


def answer_data(rollout: "Rollout") -> dict[str, Any]:
    """An answer for `--json`: text, tokens, log-probabilities in nats, reward if it is scored."""
    answer = rollout.last_response
    data: dict[str, Any] = {
        "text": answer.text,
        "tokens": list(answer.items),
        "logp": list(answer.logp),
        "finish_reason": answer.finish_reason,
    }
    if rollout.error:
        return {**data, "error": rollout.error}
    if isnan(rollout.reward):
        return data
    return {**data, "reward": rollout.reward, "reward_terms": dict(rollout.reward_terms)}


def answers_table(rollouts: Sequence["Rollout"]) -> "Table":
    """Several answers with their lengths and rewards, in the order of their random streams."""
    from rich.table import Table

    from grupo.report.escape import literal

    scored = any(_score(rollout) for rollout in rollouts)
    table = Table(show_lines=True)
    for header in ("tokens", *["reward"] * scored):
        table.add_column(header, justify="right")
    table.add_column("answer", overflow="fold")
    for rollout in rollouts:
        answer = rollout.last_response
        reward = "failed" if rollout.error else f"{rollout.reward:g}"
        cells = [str(len(answer.items)), *[reward] * scored, answer.text]
        table.add_row(*map(literal, cells))
    return table


def agreement(rollouts: Sequence["Rollout"]) -> str:
    """How many answers are the most frequent one, and the mean reward."""
    (_, count), *_ = Counter(r.last_response.text.strip() for r in rollouts).most_common(1)
    equal = f"{count} of {len(rollouts)} answers are equal"
    line = equal if count > 1 else f"all {len(rollouts)} answers differ"
    rewards = [r.reward for r in rollouts if not isnan(r.reward)]
    if rewards:
        line += f"; mean reward {sum(rewards) / len(rewards):g}"
    failed = [r.error for r in rollouts if r.error]
    return line + (f"; {len(failed)} rewards failed: {failed[0]}" if failed else "")


def logprobs_table(conversation: "Conversation", rollout: "Rollout") -> "Table":
    """The tokens of the last answer with their log-probabilities in nats."""
    from rich.table import Table

    from grupo.report.escape import literal

    tokenizer = conversation.policy.chat_tokenizer.tokenizer
    answer = rollout.last_response
    table = Table("token", "log-probability", "probability")
    for token, logp in zip(answer.items, answer.logp, strict=True):
        text = repr(tokenizer.decode([token])) if isinstance(token, int) else "soft token"
        table.add_row(literal(text), f"{logp:.3f}", f"{exp(logp):.3f}")
    return table
