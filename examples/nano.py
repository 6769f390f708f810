"""All of GRPO in one file: a small transformer learns to copy a word, from rewards alone.

    python examples/nano.py

The task: a word of 1 to 4 letters is asked, the answer is the same word and then a full stop. The
reward is the share of the answer's places that are right. Nobody ever shows the policy an answer:
it makes 16 attempts at each word, and learns from how they compare with one another.

Letters: P words (groups), G attempts at each, N = P G rows, L letters asked, T letters answered.
"""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

LETTERS = 4  # a b c d are 0..3
STOP = 4  # ends an answer, and pads a question
START = 5  # comes before the answer's first letter
L = 4  # places of a question
T = 5  # places of an answer: the longest word and its stop


class Transformer(nn.Module):
    """One layer of causal attention over question and answer: (N, S) tokens to (N, S, 5) logits."""

    def __init__(self, width: int = 48, heads: int = 4):
        super().__init__()
        self.token = nn.Embedding(START + 1, width)
        self.place = nn.Embedding(L + 1 + T, width)
        self.block = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, STOP + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1])
        # a place looks at itself and at what came before it, never ahead: its answer is not told
        ahead = places[None, :] > places[:, None]
        return self.head(self.block(self.token(tokens) + self.place(places), src_mask=ahead))


def questions(count: int) -> Tensor:
    """Words of 1 to 4 random letters, stops after their end, (P, L)."""
    letters = torch.randint(LETTERS, (count, L))
    length = torch.randint(1, L + 1, (count, 1))
    return letters.masked_fill(torch.arange(L) >= length, STOP)


@torch.no_grad()
def answer(policy: Transformer, asked: Tensor) -> tuple[Tensor, Tensor]:
    """One attempt at each row of `asked` (N, L): the letters said (N, T), and where it acted."""
    tokens = pad(asked, (0, 1), value=START)  # (N, L + 1), grows by a letter at a time
    for _ in range(T):
        chance = policy(tokens)[:, -1].softmax(-1)  # (N, 5)
        tokens = torch.cat([tokens, torch.multinomial(chance, 1)], 1)
    said = tokens[:, L + 1 :]
    # What is said after the first stop was never asked for: it earns nothing and teaches nothing.
    stops_before = (said == STOP).cumsum(1) - (said == STOP).long()
    return said, stops_before == 0


def logp_of(policy: Transformer, asked: Tensor, said: Tensor) -> Tensor:
    """Log-probability of every letter of the answers, all at once, (N, T)."""
    tokens = torch.cat([pad(asked, (0, 1), value=START), said], 1)  # (N, L + 1 + T)
    logits = policy(tokens)[:, L:-1]  # the place before a letter is the one that predicts it
    return logits.log_softmax(-1).gather(2, said[:, :, None])[:, :, 0]


def reward_of(asked: Tensor, said: Tensor, acted: Tensor) -> Tensor:
    """The share of places that are right, over the longer of the answer and the right one, (N,)."""
    right = pad(asked, (0, 1), value=STOP)  # (N, T): the word and its stop
    wanted = (right == STOP).cumsum(1) - (right == STOP).long() == 0
    hits = ((said == right) & acted & wanted).sum(1)
    return hits / (acted | wanted).sum(1)


def advantages(reward: Tensor) -> Tensor:
    """How much better than its group, in the group's standard deviations, (P, G) to (P, G).

    The group's mean is the baseline that a value network would have to learn. An attempt at an easy
    word is praised only for doing better than the other attempts at that word.
    """
    centred = reward - reward.mean(1, keepdim=True)
    return centred / (
        reward.std(1, keepdim=True) + 1e-6
    )  # 1e-6: a group of equals has no deviation


def loss_of(
    logp: Tensor,  # (N, T) now, with gradient
    old_logp: Tensor,  # (N, T) when the letters were said
    ref_logp: Tensor,  # (N, T) under the policy we do not want to stray from
    mask: Tensor,  # (N, T) where the policy acted
    advantage: Tensor,  # (N,)
    clip: float = 0.2,
    kl: float = 0.04,
) -> Tensor:
    """The loss of GRPO (arXiv:2402.03300, eq. 3 and 4), one number."""
    A = advantage[:, None]
    # masked before exp: what lies after a stop may be anything, and 0 x inf would be nan
    ratio = (logp - old_logp).masked_fill(~mask, 0.0).exp()
    # Once an action's probability has moved by 20 % the way its advantage asks for, it gets no more
    # gradient from these attempts: they say little about a policy that far away.
    surrogate = torch.min(ratio * A, ratio.clamp(1 - clip, 1 + clip) * A)
    # k3, an estimate of KL(policy, reference) that is unbiased and never negative
    d = (ref_logp - logp).masked_fill(~mask, 0.0)
    per_action = kl * (d.exp() - d - 1) - surrogate
    # mean over an answer's own letters, then over answers: long and short answers count the same
    length = mask.sum(1).clamp(min=1)
    return ((per_action * mask).sum(1) / length).mean()


def train(
    steps: int = 60,
    words: int = 16,  # P
    group: int = 16,  # G
    updates: int = 2,  # passes over each step's attempts: from the second on, ratios are not 1
    credit: Callable[[Tensor], Tensor] = advantages,
    say: Callable[[str], object] = print,
) -> list[float]:
    """The mean reward of every step."""
    torch.manual_seed(0)
    policy = Transformer()
    reference = deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-3, weight_decay=0.0)
    rewards = []
    for step in range(steps):
        asked = questions(words).repeat_interleave(group, 0)  # (N, L), a group's rows together
        said, acted = answer(policy, asked)
        reward = reward_of(asked, said, acted)
        advantage = credit(reward.view(words, group)).flatten()
        with torch.no_grad():
            old = logp_of(policy, asked, said)
            ref = logp_of(reference, asked, said)
        for _ in range(updates):
            loss = loss_of(logp_of(policy, asked, said), old, ref, acted, advantage, kl=0.001)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
        rewards.append(reward.mean().item())
        solved = (reward == 1).float().mean().item()
        length = acted.sum(1).float().mean().item()
        say(f"step {step:3d}  reward {rewards[-1]:.3f}  solved {solved:.3f}  length {length:.2f}")
    return rewards


if __name__ == "__main__":
    torch.set_num_threads(1)
    train()
