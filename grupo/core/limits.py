"""Largest sizes of configurations, rows and media, each with its reason.

A number beyond its limit is more likely a typing error than a plan. `grupo.util.limits` has the
limits of text and of files; docs/bad_input.md lists all of them.
"""

from grupo.util import limits
from grupo.util.limits import Limit

MEASURED = "measured"  # the remark of fields that this program fills; they have no limit

# fields and options; `grupo.core.limit_of_name` has their names, `grupo.core.sizes` checks them

WHOLE_NUMBER = Limit(
    "any other whole number of a component or an option, negative ones without their sign",
    10**9,
    "",
    "it counts work or memory of one machine, and loops and lists over a larger count have no end",
)
NUMBER = Limit(
    "any other number of a component or an option, except inf where it is allowed",
    10**38,
    "",
    "float32 holds numbers up to 3.4e38; larger ones become infinite in a tensor",
)
SEED = Limit(
    "a seed or a key of random numbers",
    2**63 - 1,
    "",
    "torch and NumPy take seeds of 64 bits",
)
DURATION = Limit(
    "a time limit, a delay or an interval of time",
    10**9,
    "seconds",
    "these are 31 years; locks and sockets of Python overflow above 292",
)
ENTRIES = Limit(
    "entries of a tuple, a list or a mapping in a component",
    100_000,
    "entries",
    "each is checked when the component is made, and written to recipe.json; larger lists are rows"
    " of a data set",
)
STAGES = Limit(
    "stages of a pipeline",
    1_000,
    "stages",
    "their references are checked pair by pair",
)
ROUNDS = Limit(
    "rounds of a pipeline",
    10_000,
    "rounds",
    "each is a list of stages in memory, and folders on the disk",
)
TOKENS = Limit(
    "a budget of tokens: of a run, of a rollout within a step, or of a micro-batch",
    10**15,
    "tokens",
    "it only ends work; a token per nanosecond takes eleven days to reach it",
)
PROMPTS = Limit(
    "`prompts_per_step`",
    100_000,
    "prompts",
    "the rollouts of a step are in memory together; published methods use up to 8,192 prompts",
)
ROLLOUTS = Limit(
    "rollouts, branches, drafts or search iterations of one prompt, and attempts at a task in an"
    " evaluation",
    10_000,
    "rollouts",
    "a group is generated, scored and compared as a whole; published groups have up to 2,048",
)
STEP_ROLLOUTS = Limit(
    "`prompts_per_step` times the group size",
    1_000_000,
    "rollouts",
    "the rollouts of a step are in memory together, at 1 kB and more each",
)
REWARD = Limit(
    "a reward of a rollout, with its weight and without its sign",
    10**15,
    "",
    "float32 holds numbers up to 3.4e38, and a standard deviation adds up squares of rewards",
)
EPOCHS = Limit(
    "epochs and minibatches of an update plan, rounds of resampling, retries",
    10_000,
    "",
    "each is work that is repeated within one step; published methods stay below 100",
)
NEW_TOKENS = Limit(
    "tokens of an answer",
    10_000_000,
    "tokens",
    "models have contexts of up to 1,000,000 or, for a few, 10,000,000 tokens",
)
TURNS = Limit(
    "turns of a rollout",
    1_000_000,
    "turns",
    "each is a call of the policy with the whole rollout before it",
)
ANSWER_CALLS = Limit(
    "responses that a turn strategy generates for one answer: attempts, revisions, steps,"
    " guided tokens",
    10_000,
    "calls",
    "a strategy that loops ends with its answer, which counts as failed; votes have up to 1,000"
    " attempts",
)
ANSWER_TOKENS = Limit(
    "tokens that a turn strategy generates and reads for one answer",
    100_000_000,
    "tokens",
    "as above; a vote of 1,000 long answers has 32,000,000",
)
PROCESSES = Limit(
    "processes, threads, machines, servers, and requests at a time",
    4_096,
    "",
    "each takes memory and handles of the system as soon as it starts",
)
WIDTH = Limit(
    "the width of a layer and other sizes in config.json of a model",
    1_000_000,
    "",
    "a square matrix of this width has 10^12 weights; models have widths below 100,000",
)
VOCABULARY = Limit(
    "tokens of a vocabulary",
    10_000_000,
    "tokens",
    "the logits of one position are held whole; the largest published vocabulary has 1.3 million"
    " entries",
)
TOKENIZER_FILE = Limit(
    "tokenizer.json of a model",
    256 * 2**20,
    "bytes",
    "it is read into memory whole, as objects of many times its size; large ones have 35 million"
    " bytes",
)
PICTURE_SIDE = Limit(
    "width, height and cells of pictures that are drawn",
    10_000,
    "",
    "a square of this side has 100 million pixels",
)

SIZE = Limit(
    "`size` and `count` of a component",
    10_000_000,
    "",
    "they count tasks or parts of a task, for which memory is held; as generated tasks",
)

# rows

ROW_TEXT = Limit(
    "one text or file in a row",
    64 * 2**20,
    "bytes",
    "it is copied several times while it is read, tokenized and written",
)
ROW_VALUES = Limit(
    "values in the lists and mappings of a row of a .parquet file",
    10_000_000,
    "values",
    "each is an object of Python; ten minutes of sound at 16 kHz have 9.6 million samples",
)
ROW_GROUP_SIZE = Limit(
    "a row group of a .parquet file, without compression and with 8 bytes or more a value",
    2**30,
    "bytes",
    "it is read into memory whole for one of its rows. Write the file with row groups of 10,000"
    " rows, as pandas' to_parquet(row_group_size=10_000) does",
)
PAGES = Limit(
    "pages of a column in a row group of a .parquet file",
    100_000,
    "pages",
    "each is looked up in the file before it is read; a page has 8,192 bytes and mostly a million",
)
COLUMNS = Limit(
    "columns of a table or a row",
    10_000,
    "columns",
    "each is an object of every row; tables of tasks have fewer than 100",
)

# media

MEDIA_FILE_SIZE = Limit(
    "the file of an image, a video or a sound",
    128 * 2**20,
    "bytes",
    "it is read into memory whole; an hour of sound at 16 kHz has 115 million bytes",
)
IMAGE_PIXELS = Limit(
    "pixels of an image, from its header",
    50_000_000,
    "pixels",
    "decoding takes 3 to 8 bytes for each; photographs of telephones have up to 48 million",
)
JPEG_SCANS = Limit(
    "scans of a JPEG file, and its segments of Exif",
    100,
    "of each",
    "each scan goes over all pixels again and may take a few bytes; progressive files have about"
    " 10. A segment of Exif is appended to a copy of those before it",
)
MEDIA_READS = Limit(
    "reads of chunks, markers, blocks and filling bytes by the decoder of a media file",
    1_000_000,
    "reads",
    "each takes a microsecond and may take a byte of the file; a GIF file of 120 MB has 940,000",
)
VIDEO_FRAMES = Limit(
    "frames of a video",
    10_000,
    "frames",
    "each is an image of its own for the policy; models read fewer than 1,000",
)
VIDEO_PIXELS = Limit(
    "pixels of all frames of a video together",
    200_000_000,
    "pixels",
    "all frames are in memory at 3 bytes a pixel; these are 1,000 frames of 447 x 447",
)
AUDIO_SAMPLES = Limit(
    "samples of a sound, of all channels together",
    60_000_000,
    "samples",
    "they are in memory at 4 bytes each; an hour at 16 kHz has 57.6 million",
)
AUDIO_CHANNELS = Limit(
    "channels of a sound",
    64,
    "channels",
    "the channels are averaged; microphone arrays and cinemas have up to 64",
)
AUDIO_RATE = Limit(
    "the sample rate of a sound",
    768_000,
    "samples per second",
    "converters for measurement have at most 768,000; models read 16,000",
)

LIMITS = (
    *limits.LIMITS,
    *(WHOLE_NUMBER, NUMBER, SEED, DURATION, ENTRIES, STAGES, ROUNDS),
    *(TOKENS, PROMPTS, ROLLOUTS, STEP_ROLLOUTS),
    *(
        REWARD,
        EPOCHS,
        NEW_TOKENS,
        TURNS,
        ANSWER_CALLS,
        ANSWER_TOKENS,
        PROCESSES,
        WIDTH,
        VOCABULARY,
        TOKENIZER_FILE,
        PICTURE_SIDE,
    ),
    SIZE,
    *(ROW_TEXT, ROW_VALUES, ROW_GROUP_SIZE, PAGES, COLUMNS),
    *(MEDIA_FILE_SIZE, MEDIA_READS, IMAGE_PIXELS, JPEG_SCANS, VIDEO_FRAMES, VIDEO_PIXELS),
    *(AUDIO_SAMPLES, AUDIO_CHANNELS, AUDIO_RATE),
)


def limits_table() -> str:
    """The table of all limits in docs/bad_input.md."""
    rows = [f"| {limit.name} | {limit.allowed} | {limit.reason} |" for limit in LIMITS]
    return "\n".join(["| input | allowed | reason |", "|---|---|---|", *rows])
