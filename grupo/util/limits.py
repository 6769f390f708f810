"""Limits of input: what exceeds one is rejected before it costs minutes or all memory."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """The largest allowed size of an input.

    Args:
        name: The limited quantity.
        maximum: The largest allowed value.
        unit: Unit of `maximum`.
        reason: Why there is a limit, and why it does not restrict real use.
    """

    name: str
    maximum: int
    unit: str
    reason: str

    @property
    def allowed(self) -> str:
        """The allowed values, for error messages."""
        digits = str(self.maximum)
        is_power = self.maximum >= 10**12 and not digits[1:].strip("0") and digits[0] == "1"
        maximum = f"10^{len(digits) - 1}" if is_power else f"{self.maximum:,}"
        return f"at most {maximum} {self.unit}".strip()


ARGUMENT_LENGTH = Limit(
    "an argument of the command line",
    10_000,
    "characters",
    "arguments are parsed as Python; longer values belong in a recipe file",
)
CODE_DEPTH = Limit(
    "nested brackets and operators in an argument",
    50,
    "levels",
    "deeper code overflows Python's stack; a recipe with every component has ten levels",
)
JSON_DEPTH = Limit(
    "nested lists and objects in JSON",
    100,
    "levels",
    "deeper data overflows the stack of code that walks it; a recipe has fifteen levels",
)
JSON_FILE_SIZE = Limit(
    "recipe.json or comparison.json",
    64 * 2**20,
    "bytes",
    "the file is read into memory whole; a recipe has about 5,000 bytes",
)
PROMPT_FILE_SIZE = Limit(
    "a file of `chat_template`, or of a program for `WithProgram`",
    2**20,
    "bytes",
    "it is compiled or tokenized whole; the longest published templates have 20,000 bytes",
)
RECIPE_FILE_SIZE = Limit(
    "a recipe or a pipeline in TOML or YAML",
    2**16,
    "bytes",
    "its parser takes up to ten seconds for a megabyte; recipes have a few thousand bytes",
)
YAML_VALUES = Limit(
    "values and keys of a YAML file",
    10_000,
    "values",
    "each takes 60 microseconds; recipes have hundreds",
)
DOCUMENTS_SIZE = Limit(
    "a file of documents of `KeywordSearch`",
    256 * 2**20,
    "bytes",
    "they are in memory with an index of their words; a million passages of 250 letters fit",
)
JOURNAL_LINE = Limit(
    "a line of a journal of a run: metrics, rollouts, responses",
    256 * 2**20,
    "bytes",
    "it is read into memory whole; a response of a million tokens takes about 60 million bytes",
)
GROUP_SIZE = Limit(
    "the lines of a group in rollouts.jsonl or responses.jsonl, for a report",
    2**30,
    "bytes",
    "they are in memory together; a group of 16 answers of a million tokens has a billion bytes",
)
METRICS_SIZE = Limit(
    "metrics.jsonl and clock.jsonl of a run",
    2**30,
    "bytes",
    "reports and checks hold all steps in memory; a step takes about 4,000 bytes, which are 250,000"
    " steps",
)
TASK_LINE_SIZE = Limit(
    "a line of a .jsonl file of tasks",
    64 * 2**20,
    "bytes",
    "a line is read into memory whole; long documents and images have a few million bytes",
)
TASK_ROWS = Limit(
    "rows of a file, a data set or a function of tasks",
    10_000_000,
    "rows",
    "an index of 40 bytes is held for each row of a table, and the rows of a function are held"
    " whole; 10,000,000 tasks are 16 tasks a step for 625,000 steps. Shuffle a larger table and"
    " keep its first rows",
)
GENERATED_TASKS = Limit(
    "the size of generated tasks, `rg:…(size=…)`",
    10_000_000,
    "tasks",
    "an index of 8 bytes is held for each task; the same number of tasks as for rows",
)
REPLY_SIZE = Limit(
    "a reply of a judge or of an MCP server, which is a line of one that is a program",
    16 * 2**20,
    "bytes",
    "it is read into memory whole and searched for secrets; judges reply with thousands of bytes,"
    " tools with pictures of a few million",
)
REQUEST_SIZE = Limit(
    "a request of an agent to the policy",
    16 * 2**20,
    "bytes",
    "it is read into memory whole; a conversation of a million tokens has about 5 million bytes",
)
REQUEST_VALUES = Limit(
    "a request of an agent to the policy, and the arguments of the tool calls in it together",
    100_000,
    "values",
    "each is read while all other work waits; a conversation of 10,000 messages has 30,000",
)
PROMPT_SIZE = Limit(
    "a prompt of `grupo ask` on standard input",
    2 * 2**20,
    "characters",
    "it is tokenized whole, which takes seconds a megabyte; most contexts hold fewer tokens than"
    " two million characters",
)
CONNECTIONS = Limit(
    "open connections to the server of a policy",
    4_096,
    "connections, and half of the open files that the system allows a process",
    "each is an open file of grupo, which opens others for checkpoints and journals; at most 4,096"
    " agents are at work at the same time",
)
WAITING_CALLS = Limit(
    "calls of one rollout, or of the clients of `grupo serve --openai`, in progress",
    256,
    "calls",
    "each holds a connection and its messages; the calls of a rollout are answered one after"
    " another",
)
LEFT_THREADS = Limit(
    "functions of agents that go on in their threads after their rollouts",
    64,
    "functions",
    "Python cannot end a thread, and each has memory and open files; coroutines are cancelled, and"
    " programs killed",
)
REPLY_VALUES = Limit(
    "a reply of an MCP server",
    100_000,
    "values",
    "each is checked while all other work waits; tools reply with a text of which the policy reads"
    " 2,000 characters",
)
OBSERVATION_SIZE = Limit(
    "a reply of a server of OpenEnv",
    2 * 2**20,
    "bytes",
    "the search for the token takes 35 times its size in memory; a screen of an Atari game as"
    " numbers has 504,000 bytes, and most contexts hold fewer tokens than two million characters",
)
OBSERVATION_VALUES = Limit(
    "a reply of a server of OpenEnv",
    300_000,
    "values",
    "each is visited several times; a screen of an Atari game has 100,800, and a picture of"
    " 256 x 256 pixels 196,608",
)
SERVER_MESSAGES = Limit(
    "an MCP server between two calls",
    10_000,
    "messages",
    "each takes time, also after the call; a server that reports its progress sends a few a second",
)
SERVER_TOOLS = Limit(
    "the list of tools of an MCP server",
    10_000,
    "tools",
    "each schema is checked; a prompt with 1,000 tools is longer than most contexts",
)
GYM_SETTING = Limit(
    "a whole number among the settings of a reasoning-gym family",
    100_000,
    "or 1,000 times the family's default",
    "the time of a task grows with its numbers of terms, digits or cells",
)
FOLDER_FILES = Limit(
    "files in a folder of tasks, those in folders in it included",
    100_000,
    "files",
    "`datasets` lists all of them; `--tasks /` or a home directory would take minutes",
)
STALENESS = Limit(
    "`max_staleness`",
    1_000,
    "steps",
    "that many steps of rollouts are generated before the first update; published methods stay"
    " below 300",
)
STEPS = Limit(
    "`max_steps`, and a budget of steps or updates",
    1_000_000_000,
    "",
    "progress is a float, which a far larger number overflows; steps of a millisecond would last"
    " eleven days",
)
SEEDS = Limit(
    "the number of seeds of a comparison",
    1_000,
    "seeds",
    "each is a run of every recipe",
)
MODEL_LAYERS = Limit(
    "numbers of layers in config.json of a model",
    10_000,
    "layers",
    "modules are made before the weights are read; models have fewer than 1,000",
)
LORA_RANK = Limit(
    "`rank` of adapters",
    65_536,
    "",
    "an adapter whose rank exceeds the width of its layer has no more capacity than the layer",
)
GGUF_ENTRIES = Limit(
    "tensors, settings and entries of lists in the header of a .gguf file",
    2_000_000,
    "entries",
    "the reader of gguf makes an object of each; the largest published vocabulary has 1.3 million"
    " entries with its scores, types and merges",
)
GGUF_STRING = Limit(
    "a text in the header of a .gguf file",
    16 * 2**20,
    "bytes",
    "it is read into memory whole; long chat templates have 20,000 bytes",
)
LIMITS = (
    ARGUMENT_LENGTH,
    CODE_DEPTH,
    JSON_DEPTH,
    JSON_FILE_SIZE,
    PROMPT_FILE_SIZE,
    RECIPE_FILE_SIZE,
    YAML_VALUES,
    DOCUMENTS_SIZE,
    JOURNAL_LINE,
    GROUP_SIZE,
    METRICS_SIZE,
    TASK_LINE_SIZE,
    TASK_ROWS,
    GENERATED_TASKS,
    REPLY_SIZE,
    REQUEST_SIZE,
    REQUEST_VALUES,
    PROMPT_SIZE,
    CONNECTIONS,
    WAITING_CALLS,
    LEFT_THREADS,
    REPLY_VALUES,
    OBSERVATION_SIZE,
    OBSERVATION_VALUES,
    SERVER_MESSAGES,
    SERVER_TOOLS,
    GYM_SETTING,
    FOLDER_FILES,
    STALENESS,
    STEPS,
    SEEDS,
    MODEL_LAYERS,
    LORA_RANK,
    GGUF_ENTRIES,
    GGUF_STRING,
)
