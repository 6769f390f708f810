"""Tool calls as blocks of text: sampling stops at </search> or </code>, and the result follows."""

from collections.abc import Callable

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonEmptyString, PositiveInt
from grupo.core.types import Observation, Task
from grupo.envs.game_env import StepResult
from grupo.util.errors import ConfigError

RESPONSE = "response"


@component
class Block:
    """A block that calls a tool: `<search>query</search>`.

    Args:
        tag: Name of the tag, without brackets.
        tool: Function of the block's text; its result is the response.
    """

    tag: NonEmptyString
    tool: Callable[[str], object]


@component
class BlockTools:
    """Environment factory for tool calls in blocks: `MultiTurn(BlockTools(...), max_turns=4)`.

    The policy stops at a closing tag: give it the `stop_strings`. Its text is then followed by
    `<response>…</response>`, on which nothing is trained. Any other text ends the rollout. Reward
    terms count the calls: `tool_calls` that ran and `tool_errors` that raised. TAPO, Goer17/TAPO.

    Args:
        blocks: The blocks that call tools.
        max_response_chars: Characters after which a result is truncated.

    >>> session = BlockTools((Block("code", eval),))()
    >>> session.step("<think>2 and 2</think><code>2 + 2</code>").observation
    '<response>4</response>'
    """

    blocks: tuple[Block, ...]
    max_response_chars: PositiveInt = 8192

    def __post_init__(self) -> None:
        tags = [block.tag for block in self.blocks]
        if not tags or len({*tags, RESPONSE}) <= len(tags):
            raise ConfigError(
                f"blocks: {tags}. Allowed: at least one tag, none twice, and not {RESPONSE!r}."
            )

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """The closing tags, for `CausalLM(stop_strings=…)`."""
        return (*(f"</{block.tag}>" for block in self.blocks), "</answer>")

    def __call__(self) -> "BlockSession":
        return BlockSession(self)


class BlockSession:
    """A session of tool calls, without state between them.

    Args:
        config: The blocks.
    """

    def __init__(self, config: BlockTools) -> None:
        self.config = config

    def reset(self, task: Task) -> Observation:
        """The task's prompt."""
        return task.prompt

    def step(self, text: str) -> StepResult:
        """The response to the block at the end of a text; without one, the session is done."""
        for block in self.config.blocks:
            body = text.rstrip()
            closed = body.removesuffix(f"</{block.tag}>")
            _, open_tag, call = closed.rpartition("\n")[2].partition(f"<{block.tag}>")
            if open_tag and closed != body:
                return self._response(block, call.strip())
        return StepResult("", done=True)

    def _response(self, block: Block, call: str) -> StepResult:
        counts = {"tool_calls": 1.0}
        try:
            result = str(block.tool(call))
        except ConfigError:  # the machine's fault, not the policy's: the rollout fails
            raise
        except Exception as error:
            result = f"error: {type(error).__name__}: {' '.join(str(error).split())}"
            counts["tool_errors"] = 1.0
        cut = result[: self.config.max_response_chars] or "(nothing)"
        return StepResult(f"<{RESPONSE}>{cut}</{RESPONSE}>", counts=counts)


PAPER = Paper(
    title="Tool-Augmented Policy Optimization: Synergizing Reasoning and Adaptive Tool Use with "
    "Reinforcement Learning",
    kind="environment",
    use="The policy should think, search and compute in one answer, and only where it helps.",
    tags=("agents", "reward", "filtering", "length"),
    catalogue=("tapo-tool",),
    source=Source(
        "code",
        "Goer17/TAPO, verl/utils/reward_score/tool_dapo.py, verl/workers/reward_manager/tapo.py and"
        " recipe/tapo, as the catalogue cites them",
    ),
    checked=("golden",),
    deviations=(
        "Results are cut by characters, not by tokens; the tolerance of 5 percent for complex"
        " numbers is `NumberWithin(relative=0.05)` as another route.",
    ),
    shown=("docs/small_claims.md#tool-blocks",),
)
