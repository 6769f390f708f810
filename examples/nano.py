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

NUM_LETTERS = 4  # a b c d are 0..3
STOP_TOKEN = 4  # ends an answer, and pads a question
START_TOKEN = 5  # comes before the answer's first letter
QUESTION_LENGTH = 4  # places of a question
ANSWER_LENGTH = 5  # places of an answer: the longest word and its stop


class Transformer(nn.Module):
    """One layer of causal attention over question and answer: (N, S) tokens to (N, S, 5) logits."""

    def __init__(self, width: int = 48, heads: int = 4):
        super().__init__()
        self.token = nn.Embedding(START_TOKEN + 1, width)
        self.position = nn.Embedding(QUESTION_LENGTH + 1 + ANSWER_LENGTH, width)
        self.block = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, STOP_TOKEN + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1])
        # a place looks at itself and at what came before it, never ahead: its answer is not told
        ahead = places[None, :] > places[:, None]
        return self.head(self.block(self.token(tokens) + self.position(places), src_mask=ahead))


def random_questions(count: int) -> Tensor:
    """Words of 1 to 4 random letters, stops after their end, (P, L)."""
    letters = torch.randint(NUM_LETTERS, (count, QUESTION_LENGTH))
    length = torch.randint(1, QUESTION_LENGTH + 1, (count, 1))
    return letters.masked_fill(torch.arange(QUESTION_LENGTH) >= length, STOP_TOKEN)


@torch.no_grad()
def sample_answers(policy: Transformer, questions: Tensor) -> tuple[Tensor, Tensor]:
    """One attempt at each row of `asked` (N, L): the letters said (N, T), and where it acted."""
    tokens = pad(questions, (0, 1), value=START_TOKEN)  # (N, L + 1), grows by a letter at a time
    for _ in range(ANSWER_LENGTH):
        chance = policy(tokens)[:, -1].softmax(-1)  # (N, 5)
        tokens = torch.cat([tokens, torch.multinomial(chance, 1)], 1)
    said = tokens[:, QUESTION_LENGTH + 1 :]
    # What is said after the first stop was never asked for: it earns nothing and teaches nothing.
    stops_before = (said == STOP_TOKEN).cumsum(1) - (said == STOP_TOKEN).long()
    return said, stops_before == 0


def answer_logp(policy: Transformer, questions: Tensor, answers: Tensor) -> Tensor:
    """Log-probability of every letter of the answers, all at once, (N, T)."""
    tokens = torch.cat([pad(questions, (0, 1), value=START_TOKEN), answers], 1)  # (N, L + 1 + T)
    logits = policy(tokens)[
        :, QUESTION_LENGTH:-1
    ]  # the place before a letter is the one that predicts it
    return logits.log_softmax(-1).gather(2, answers[:, :, None])[:, :, 0]


def answer_reward(questions: Tensor, answers: Tensor, mask: Tensor) -> Tensor:
    """The share of places that are right, over the longer of the answer and the right one, (N,)."""
    right = pad(questions, (0, 1), value=STOP_TOKEN)  # (N, T): the word and its stop
    wanted = (right == STOP_TOKEN).cumsum(1) - (right == STOP_TOKEN).long() == 0
    hits = ((answers == right) & mask & wanted).sum(1)
    return hits / (mask | wanted).sum(1)


def advantages(reward: Tensor) -> Tensor:
    """How much better than its group, in the group's standard deviations, (P, G) to (P, G).

    The group's mean is the baseline that a value network would have to learn. An attempt at an easy
    word is praised only for doing better than the other attempts at that word.
    """
    centred = reward - reward.mean(1, keepdim=True)
    return centred / (
        reward.std(1, keepdim=True) + 1e-6
    )  # 1e-6: a group of equals has no deviation


def grpo_loss(
    logp: Tensor,  # (N, T) now, with gradient
    old_logp: Tensor,  # (N, T) when the letters were said
    ref_logp: Tensor,  # (N, T) under the policy we do not want to stray from
    mask: Tensor,  # (N, T) where the policy acted
    advantage: Tensor,  # (N,)
    clip_eps: float = 0.2,
    kl_coef: float = 0.04,
) -> Tensor:
    """The loss of GRPO (arXiv:2402.03300, eq. 3 and 4), one number."""
    A = advantage[:, None]
    # masked before exp: what lies after a stop may be anything, and 0 x inf would be nan
    ratio = (logp - old_logp).masked_fill(~mask, 0.0).exp()
    # Once an action's probability has moved by 20 % the way its advantage asks for, it gets no more
    # gradient from these attempts: they say little about a policy that far away.
    surrogate = torch.min(ratio * A, ratio.clamp(1 - clip_eps, 1 + clip_eps) * A)
    # k3, an estimate of KL(policy, reference) that is unbiased and never negative
    d = (ref_logp - logp).masked_fill(~mask, 0.0)
    per_action = kl_coef * (d.exp() - d - 1) - surrogate
    # mean over an answer's own letters, then over answers: long and short answers count the same
    length = mask.sum(1).clamp(min=1)
    return ((per_action * mask).sum(1) / length).mean()


def train(
    max_steps: int = 60,
    prompts_per_step: int = 16,  # P
    group_size: int = 16,  # G
    epochs: int = 2,  # passes over each step's attempts: from the second on, ratios are not 1
    advantage_fn: Callable[[Tensor], Tensor] = advantages,
    log: Callable[[str], object] = print,
) -> list[float]:
    """The mean reward of every step."""
    torch.manual_seed(0)
    policy = Transformer()
    reference = deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-3, weight_decay=0.0)
    rewards = []
    for step in range(max_steps):
        asked = random_questions(prompts_per_step).repeat_interleave(
            group_size, 0
        )  # (N, L), a group's rows together
        said, acted = sample_answers(policy, asked)
        reward = answer_reward(asked, said, acted)
        advantage = advantage_fn(reward.view(prompts_per_step, group_size)).flatten()
        with torch.no_grad():
            old = answer_logp(policy, asked, said)
            ref = answer_logp(reference, asked, said)
        for _ in range(epochs):
            loss = grpo_loss(
                answer_logp(policy, asked, said), old, ref, acted, advantage, kl_coef=0.001
            )
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
        rewards.append(reward.mean().item())
        solved = (reward == 1).float().mean().item()
        length = acted.sum(1).float().mean().item()
        log(f"step {step:3d}  reward {rewards[-1]:.3f}  solved {solved:.3f}  length {length:.2f}")
    return rewards


if __name__ == "__main__":
    torch.set_num_threads(1)
    train()
