"""GRPO in one file: a small transformer learns to copy a word, from rewards alone.

    python examples/nano.py

The task: the prompt is a word of 1 to 4 letters, the answer the same word followed by a stop token.
The reward is the fraction of correct positions. The policy never sees a reference answer: it
generates 16 answers to each word, and learns from their comparison.

Letters: P prompts (groups), G answers to each, N = P G rows, L tokens of a prompt, T of an answer.
"""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

NUM_LETTERS = 4  # a b c d are 0..3
STOP_TOKEN = 4  # ends an answer, and pads a prompt
START_TOKEN = 5  # precedes the answer
PROMPT_LENGTH = 4  # tokens of a prompt
ANSWER_LENGTH = 5  # tokens of an answer: the longest word and its stop token


class Transformer(nn.Module):
    """One layer of causal attention over prompt and answer: (N, S) tokens to (N, S, 5) logits."""

    def __init__(self, width: int = 48, heads: int = 4):
        super().__init__()
        self.token = nn.Embedding(START_TOKEN + 1, width)
        self.position = nn.Embedding(PROMPT_LENGTH + 1 + ANSWER_LENGTH, width)
        self.block = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, STOP_TOKEN + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1])
        causal_mask = positions[None, :] > positions[:, None]  # True: not attended to
        hidden = self.token(tokens) + self.position(positions)
        return self.head(self.block(hidden, src_mask=causal_mask))


def random_prompts(count: int) -> Tensor:
    """Words of 1 to 4 random letters, padded with stop tokens, (P, L)."""
    letters = torch.randint(NUM_LETTERS, (count, PROMPT_LENGTH))
    length = torch.randint(1, PROMPT_LENGTH + 1, (count, 1))
    return letters.masked_fill(torch.arange(PROMPT_LENGTH) >= length, STOP_TOKEN)


@torch.no_grad()
def sample_answers(policy: Transformer, prompts: Tensor) -> tuple[Tensor, Tensor]:
    """Sampled answers to the prompts (N, L): tokens (N, T), and the mask up to the first stop."""
    tokens = pad(prompts, (0, 1), value=START_TOKEN)  # (N, L + 1), one more each step
    for _ in range(ANSWER_LENGTH):
        probs = policy(tokens)[:, -1].softmax(-1)  # (N, 5)
        tokens = torch.cat([tokens, torch.multinomial(probs, 1)], 1)
    answers = tokens[:, PROMPT_LENGTH + 1 :]
    # tokens after the first stop have no reward and are not trained on
    stops_before = (answers == STOP_TOKEN).cumsum(1) - (answers == STOP_TOKEN).long()
    return answers, stops_before == 0


def answer_logp(policy: Transformer, prompts: Tensor, answers: Tensor) -> Tensor:
    """Log-probability of every token of the answers, in one forward pass, (N, T)."""
    tokens = torch.cat([pad(prompts, (0, 1), value=START_TOKEN), answers], 1)  # (N, L + 1 + T)
    logits = policy(tokens)[:, PROMPT_LENGTH:-1]  # each position predicts the next token
    return logits.log_softmax(-1).gather(2, answers[:, :, None])[:, :, 0]


def answer_reward(prompts: Tensor, answers: Tensor, mask: Tensor) -> Tensor:
    """The fraction of correct positions, of the longer of answer and reference answer, (N,)."""
    reference = pad(prompts, (0, 1), value=STOP_TOKEN)  # (N, T): the word and its stop token
    is_stop = reference == STOP_TOKEN
    reference_mask = is_stop.cumsum(1) - is_stop.long() == 0
    correct = ((answers == reference) & mask & reference_mask).sum(1)
    return correct / (mask | reference_mask).sum(1)


def advantages(reward: Tensor) -> Tensor:
    """(reward - group mean) / group standard deviation, (P, G) to (P, G).

    The group's mean is the baseline that PPO's value network would have to learn: an answer to an
    easy prompt has a positive advantage only if it is better than the other answers to it.
    """
    centred = reward - reward.mean(1, keepdim=True)
    std = reward.std(1, keepdim=True)
    return centred / (std + 1e-6)  # equal rewards have no deviation


def grpo_loss(
    logp: Tensor,  # (N, T) under the current policy, with gradient
    old_logp: Tensor,  # (N, T) under the policy that sampled
    ref_logp: Tensor,  # (N, T) under the reference policy
    mask: Tensor,  # (N, T) True up to the first stop token
    advantage: Tensor,  # (N,)
    clip_eps: float = 0.2,
    kl_coef: float = 0.04,
) -> Tensor:
    """The loss of GRPO (arXiv:2402.03300, eq. 3 and 4), a scalar."""
    A = advantage[:, None]
    # masked before exp: values after a stop may be anything, and 0 * inf would be nan
    ratio = (logp - old_logp).masked_fill(~mask, 0.0).exp()
    # Clipping: a token whose probability has moved by 20 % in the direction of its advantage has no
    # more gradient, since the samples say little about a policy that far away.
    surrogate = torch.min(ratio * A, ratio.clamp(1 - clip_eps, 1 + clip_eps) * A)
    # k3, an unbiased and nonnegative estimate of KL(policy, reference)
    d = (ref_logp - logp).masked_fill(~mask, 0.0)
    token_loss = kl_coef * (d.exp() - d - 1) - surrogate
    # mean over the tokens of an answer, then over answers: short and long answers weigh the same
    length = mask.sum(1).clamp(min=1)
    return ((token_loss * mask).sum(1) / length).mean()


def train(
    max_steps: int = 60,
    prompts_per_step: int = 16,  # P
    group_size: int = 16,  # G
    epochs: int = 2,  # over each step's answers; from the second on, the ratios differ from 1
    advantage_fn: Callable[[Tensor], Tensor] = advantages,
    log: Callable[[str], object] = print,
) -> list[float]:
    """Train a policy; returns the mean reward of every step."""
    torch.manual_seed(0)
    policy = Transformer()
    reference = deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-3, weight_decay=0.0)
    rewards = []
    for step in range(max_steps):
        prompts = random_prompts(prompts_per_step)
        prompts = prompts.repeat_interleave(group_size, 0)  # (N, L), grouped
        answers, mask = sample_answers(policy, prompts)
        reward = answer_reward(prompts, answers, mask)
        advantage = advantage_fn(reward.view(prompts_per_step, group_size)).flatten()
        with torch.no_grad():
            old_logp = answer_logp(policy, prompts, answers)
            ref_logp = answer_logp(reference, prompts, answers)
        for _ in range(epochs):
            logp = answer_logp(policy, prompts, answers)
            loss = grpo_loss(logp, old_logp, ref_logp, mask, advantage, kl_coef=0.001)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
        rewards.append(reward.mean().item())
        solved = (reward == 1).float().mean().item()
        length = mask.sum(1).float().mean().item()
        log(f"step {step:3d}  reward {rewards[-1]:.3f}  solved {solved:.3f}  length {length:.2f}")
    return rewards


if __name__ == "__main__":
    torch.set_num_threads(1)
    train()
