"""A small run that is healthy, and the same run broken on purpose, each time in one way."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from grupo.batch import Batch
from grupo.collate import collate
from grupo.credit import Center, chain
from grupo.envs import Part, SingleTurn
from grupo.losses import Clip, Entropy
from grupo.method import Method
from grupo.piece import piece
from grupo.policies.causal_lm import CausalLM
from grupo.policies.causal_policy import CausalPolicy
from grupo.policies.loading import Lora
from grupo.policies.voice import Apart, Own, Weights
from grupo.recipe import Recipe
from grupo.rollout import Observation, Rollout, Task, Verdict
from grupo.sampling import Independent
from grupo.tasks import FromFunction

LETTERS, STOPS = "abcdefgh", (".", " ", "=", "+", "?", ":")
ALPHABET = ["<end>", *LETTERS, *"0123456789", *STOPS]


def plant(folder: Path) -> str:
    """A Llama of one layer over 25 characters, of peaked distributions."""
    vocabulary = {char: number for number, char in enumerate(ALPHABET)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=" "))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)
    wide = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "max_position_embeddings": 64}
    ends = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(ALPHABET), **wide, **heads, **ends))
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.4)
    model.save_pretrained(folder)
    return str(folder)


def sums() -> Iterator[Task]:
    for i in range(1, 10):
        yield from (Task(f"{i}+{j}", f"{i}+{j}=", str(i + j)) for j in range(1, 10))


def told_sums() -> Iterator[Task]:
    for task in sums():
        yield replace(task, prompt=f"{task.answer}: {task.prompt}")


def by_letter(rollout: Rollout) -> float:
    """Pays where the first turn begins with a letter."""
    return float(rollout.text[:1] in LETTERS and bool(rollout.text))


def always(rollout: Rollout) -> float:
    return 1.0


def by_length(rollout: Rollout) -> float:
    return rollout.length / 40


def no_number(rollout: Rollout) -> float:
    return math.nan if rollout.length % 3 == 0 else by_letter(rollout)


def raises(task: Task, rollout: Rollout) -> float:
    return no_number(rollout)


@piece
class TwoTurns:
    """A question, and one more."""

    reward: Callable[[Rollout], float] = by_letter

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return (task.prompt, "?:")[len(rollout.turns)] if len(rollout.turns) < 2 else None

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> list[Verdict]:
        return [Verdict(self.reward(rollout)) for rollout in rollouts]


class Deaf(Apart):
    """Speaks with the weights that the policy began with."""

    def load(self, weights: Weights) -> None:
        pass


@piece
class Stale(CausalLM):
    """Its sampler never hears of new weights."""

    def build(self) -> CausalPolicy:
        policy = CausalPolicy(self)
        policy.voice = _voice(Deaf, policy)
        return policy


@piece
class Colder(CausalLM):
    """Its sampler draws from a sharper distribution than it says."""

    def build(self) -> CausalPolicy:
        policy = CausalPolicy(self)
        policy.voice = _voice(Own, policy)
        policy.voice.head = replace(policy.head, scale=1.3)
        return policy


@piece
class Dead(CausalLM):
    """Both halves of its adapters are 0."""

    def build(self) -> CausalPolicy:
        policy = CausalPolicy(self)
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.zero_()
        return policy


def _voice(kind: Any, policy: CausalPolicy) -> Any:
    return kind(policy.reader, policy.head, policy.language.tokenizer, policy.bounds)


def turned(x: Tensor, batch: Batch) -> Tensor:
    """The wrong sign."""
    return -x


def collated_with_the_world(*given: Any) -> Batch:
    """The world's words are to be learned, too."""
    batch = collate(*given)
    width = (batch.inputs["length"] - batch.inputs["start"])[:, None]
    return replace(batch, mask=torch.arange(batch.mask.shape[1]) < width)


def collated_one_off(*given: Any) -> Batch:
    """The mask is shifted by one."""
    batch = collate(*given)
    return replace(batch, mask=batch.mask.roll(1, 1))


METHOD = Method(sample=Independent(6))


def healthy(model: str) -> Recipe:
    """Plain GRPO."""
    return Recipe(
        policy=CausalLM(model, limit=16, stop=STOPS, device="cpu"),
        env=TwoTurns(),
        tasks=FromFunction(sums),
        held_out=0,
        method=METHOD,
        steps=8,
        prompts=6,
        lr=5e-3,
    )


def adapted(model: str) -> Recipe:
    """The same with adapters."""
    recipe = healthy(model)
    return recipe.but(policy=replace(recipe.policy, lora=Lora(4)))


def longer(model: str) -> Recipe:
    """The same, longer and faster."""
    return healthy(model).but(steps=14, lr=2e-2)


def with_policy(recipe: Recipe, kind: Any = CausalLM, **changes: Any) -> Recipe:
    """The recipe with another kind of policy, or the same otherwise."""
    spec: Any = recipe.policy
    own = {name: getattr(spec, name) for name in ("model", "lora", "limit", "stop", "device")}
    return recipe.but(policy=kind(**{**own, **changes}))


Break = Callable[[Recipe], Recipe]
# the finding's name; the healthy run; how it is broken
BROKEN: Mapping[str, tuple[str, Callable[[str], Recipe], Break]] = {
    "sign of the loss flipped": (
        "pushed the wrong way",
        healthy,
        lambda r: r.but(method=METHOD.but(loss=-1.0 * Clip())),
    ),
    "sign of the credit flipped": (
        "advantages against the reward",
        healthy,
        lambda r: r.but(method=METHOD.but(credit=chain(Center(), turned))),
    ),
    "constant reward": (
        "reward never differs",
        healthy,
        lambda r: r.but(env=TwoTurns(always)),
    ),
    "learning rate too high": ("learning rate too high", healthy, lambda r: r.but(lr=0.5)),
    "truncated answers": ("answers cut off", healthy, lambda r: with_policy(r, limit=2)),
    "leaking answer": (
        "answer in the prompt",
        healthy,
        lambda r: r.but(tasks=FromFunction(told_sums)),
    ),
    "engine mismatch": (
        "sampler and trainer disagree",
        healthy,
        lambda r: with_policy(r, Colder),
    ),
    "stale weights": ("stale weights", healthy, lambda r: with_policy(r, Stale)),
    "dead LoRA": ("dead adapters", adapted, lambda r: with_policy(r, Dead)),
    "entropy collapse": (
        "entropy collapse",
        longer,
        lambda r: r.but(method=METHOD.but(loss=Clip() + 4.0 * Entropy())),
    ),
    "length hacking": ("reward follows length", healthy, lambda r: r.but(env=TwoTurns(by_length))),
    "NaN reward": (
        "failed rewards",
        healthy,
        lambda r: r.but(env=SingleTurn((Part("part", raises),))),
    ),
    "NaN reward that nobody says has failed": (
        "NaN rewards",
        healthy,
        lambda r: r.but(env=TwoTurns(no_number)),
    ),
    "learning rate 0": ("weights do not change", healthy, lambda r: r.but(lr=0.0)),
}
MASKS = {"the world's words": collated_with_the_world, "one off": collated_one_off}
