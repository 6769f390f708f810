"""An option of another library, and the option of grupo for the same choice."""

import math
from collections.abc import Callable
from dataclasses import dataclass


def unchanged(text: str) -> str:
    """The value itself."""
    return text


def dtype_if_true(text: str) -> str:
    """The dtype of a flag such as `bf16`.

    >>> dtype_if_true("True"), dtype_if_true("no")
    ('bfloat16', 'float32')
    """
    return "bfloat16" if text.lower() in ("true", "1", "yes", "") else "float32"


def dtype(text: str) -> str:
    """The dtype of a name such as `bf16`, `torch.float32` or `fp32`.

    >>> dtype("bf16"), dtype("torch.float32")
    ('bfloat16', 'float32')
    """
    return "float32" if text.lower().removeprefix("torch.") in ("fp32", "float32") else "bfloat16"


def truth(text: str) -> str:
    """True or False.

    >>> truth("true"), truth("0")
    ('True', 'False')
    """
    return "True" if text.lower() in ("true", "1", "yes", "") else "False"


def no_value(text: str) -> str:
    """Nothing: grupo's option has no value of this option."""
    return ""


def rank_of(text: str) -> str:
    """The rank of adapters; 16 for a flag.

    >>> rank_of("8"), rank_of("True")
    ('8', '16')
    """
    return text if text.isdigit() else "16"


def server_url(text: str) -> str:
    """The address of a server; an example for a flag.

    >>> server_url("http://host:1"), server_url("True")
    ('http://host:1', 'http://127.0.0.1:8000')
    """
    return text if text.startswith("http") else "http://127.0.0.1:8000"


def optimizer(text: str) -> str:
    """The optimizer of one of transformers' names.

    >>> optimizer("adamw_torch_fused"), optimizer("adamw_8bit"), optimizer("adafactor")
    ('"Adam()"', '"Adam8bit()"', '"Adafactor()"')
    """
    names = {"8bit": "Adam8bit", "adafactor": "Adafactor", "muon": "Muon", "sgd": "SGD"}
    known = (name for part, name in names.items() if part in text.lower())
    return f'"{next(known, "Adam")}()"'


def logger(text: str) -> str:
    """The option of the first logger of a list; --wandb for any other.

    >>> logger("['tensorboard']"), logger("all")
    ('--tensorboard', '--wandb')
    """
    names = ("wandb", "tensorboard", "trackio")
    return f"--{next((name for name in names if name in text), names[0])}"


def not_negative(text: str) -> str:
    """The number, 0 in place of -1 and None.

    >>> not_negative("-1"), not_negative("50"), not_negative("None")
    ('0', '50', '0')
    """
    return "0" if text.startswith("-") or text in ("None", "null") else text


def rounded_up(text: str) -> str:
    """The next whole number.

    >>> rounded_up("0.1"), rounded_up("2")
    ('1', '2')
    """
    return str(math.ceil(float(text)))


@dataclass(frozen=True)
class OtherOption:
    """An option of another library.

    Args:
        name: Its name there, dotted if it is nested.
        answer: grupo's option, with "{}" for the value; "" if grupo has none.
        default: Its default there, as text.
        note: What else differs, or why there is no counterpart.
        example: A value; the default by default.
        convert: The value's text in grupo's notation.
        is_neutral: True for an option that changes no result: devices, memory, logs.
    """

    name: str
    answer: str
    default: str = ""
    note: str = ""
    example: str = ""
    convert: Callable[[str], str] = unchanged
    is_neutral: bool = False

    def grupo_option(self, value: str = "") -> str:
        """grupo's option with the value, or with an example if there is none.

        >>> OtherOption("num_generations", "--method.sampler.group-size {}", "8").grupo_option("4")
        '--method.sampler.group-size 4'
        """
        return self.answer.format(self.convert(value or self.example or self.default))


@dataclass(frozen=True)
class Library:
    """The options of a library.

    Args:
        name: Its name; "" for names that belong to no library.
        source: The release and the file that the names and defaults were compared with.
        options: The options.
        prefix: Precedes the names on its command line.
    """

    name: str
    source: str
    options: tuple[OtherOption, ...]
    prefix: str = "--"


def neutral(note: str, *names: str) -> tuple[OtherOption, ...]:
    """Options without counterpart that change no result."""
    return tuple(OtherOption(name, "", note=note, is_neutral=True) for name in names)


def missing(note: str, *names: str) -> tuple[OtherOption, ...]:
    """Options without counterpart that change the training."""
    return tuple(OtherOption(name, "", note=note) for name in names)


PLACEMENT = "--ranks N places the processes, --policy.sharding divides the weights"
OWN_MEMORY = "memory is bounded by --policy.tokens-per-microbatch TOKENS"
LOGS = "every step is logged"
