"""The nearest allowed spelling of a name, for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches

# names that other libraries give to arguments, with grupo's names in order of preference
SYNONYMS = {
    "beta": ("kl_coef",),
    "kl": ("kl_coef",),
    "beta_kl": ("kl_coef",),
    "epsilon": ("clip_eps", "clip_low"),
    "eps": ("clip_eps",),
    "clip": ("clip_eps", "clip_high"),
    "clip_ratio": ("clip_eps", "clip_high"),
    "epsilon_low": ("clip_low",),
    "clip_ratio_low": ("clip_low",),
    "epsilon_high": ("clip_high",),
    "clip_ratio_high": ("clip_high",),
    "r": ("rank",),
    "lora_r": ("rank",),
    "lora_rank": ("rank",),
    "lora_alpha": ("alpha",),
    "target_modules": ("targets",),
    "n": ("group_size", "attempts"),
    "g": ("group_size",),
    "num_generations": ("group_size",),
    "num_rollouts": ("group_size",),
    "n_samples_per_prompt": ("group_size",),
    "lr": ("learning_rate",),
    "lam": ("gae_lambda",),
    "lambda": ("gae_lambda",),
    "num_iterations": ("epochs",),
    "ppo_epochs": ("epochs",),
    "num_minibatches": ("minibatches",),
    "mini_batches": ("minibatches",),
    "betas": ("beta1", "beta2"),
    "max_completion_length": ("max_new_tokens", "max_length"),
    "max_tokens": ("max_new_tokens", "max_length"),
    "overlong_buffer_len": ("overlong_buffer",),
    "bf16": ("bfloat16",),
    "fp16": ("bfloat16",),
    "float16": ("bfloat16",),
    "half": ("bfloat16",),
    "fp32": ("float32",),
    "adamw": ("Adam",),
    "adamw_8bit": ("Adam8bit",),
    "stop": ("stop_strings",),
    "temp": ("temperature",),
    "max_length": ("max_new_tokens",),
    # names of columns, in other tables, for a prompt and a reference answer
    "prompt": ("question", "problem", "messages", "query", "instruction", "input", "text"),
    "answer": ("solution", "ground_truth", "target", "label", "output", "response"),
    "solution": ("answer", "ground_truth"),
    "ground_truth": ("answer", "solution"),
    "reference_answer": ("answer", "ground_truth", "solution"),
    "target": ("answer", "ground_truth", "solution"),
    "label": ("answer", "ground_truth", "solution"),
}


def nearest(name: str, allowed: Iterable[str], cutoff: float = 0.6) -> str:
    """The nearest allowed name, or "".

    In this order: the same but for case and hyphens, a synonym, the same letters, a near one.

    Args:
        name: The name as it was written.
        allowed: The allowed names; of two equally near ones the first.
        cutoff: Smallest similarity of a near name, 0 to 1.

    >>> nearest("Dr-GRPO", ["grpo", "dr_grpo"]), nearest("r", ["alpha", "rank"])
    ('dr_grpo', 'rank')
    >>> nearest("epslon", ["epsilon", "length"]), nearest("x", ["epsilon"])
    ('epsilon', '')
    >>> nearest("gpro", ["igpo", "grpo"])
    'grpo'
    """
    names = list(allowed)
    by_key = {_key(known): known for known in reversed(names)}
    if _key(name) in by_key:
        return by_key[_key(name)]
    for synonym in SYNONYMS.get(name.lower().replace("-", "_"), ()):
        if synonym in names:
            return synonym
    longest = max(map(len, names), default=0)
    if len(name) > (2 / cutoff - 1) * longest:  # no similarity of so long a text reaches the cutoff
        return ""
    reordered = [known for known in names if sorted(_key(known)) == sorted(_key(name))]
    close = reordered or get_close_matches(name, names, n=1, cutoff=cutoff)
    return close[0] if close else ""


def _key(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
