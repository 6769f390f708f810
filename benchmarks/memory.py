"""Peak memory of log-probabilities and entropies, forward and backward: in chunks, and all at once.

    python benchmarks/memory.py --rows 4 --actions 512 --hidden 256

Every measurement is a process of its own: its peak resident memory, less that of a process which
holds the inputs and does nothing with them.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from grupo.inference.sampling_params import Sampling
from grupo.models.token_statistics import LOGITS_PER_CHUNK, TokenDistributions, token_signals

MIB = 1 << 20
LossFunction = Callable[[Tensor, Tensor, nn.Linear], Tensor]


def chunked_loss(hidden: Tensor, token: Tensor, head: nn.Linear, *, chunk: int) -> Tensor:
    """As the policies do it."""
    names = ("logp", "entropy")
    said = token_signals(
        TokenDistributions(hidden, token, head, Sampling()), names, logits_per_chunk=chunk
    )
    return (said["logp"] + said["entropy"]).sum()


def full_loss(hidden: Tensor, token: Tensor, head: nn.Linear) -> Tensor:
    """The plain way: every logit of every action, then what is wanted of them."""
    logp = head(hidden).log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    return (logp.gather(1, token[:, None])[:, 0] + entropy).sum()


def baseline_loss(hidden: Tensor, token: Tensor, head: nn.Linear) -> Tensor:
    """What is there anyway: inputs, the head, and a gradient for each."""
    return hidden.sum() + head.weight.sum() + 0 * token.sum()


def loss_function(name: str, chunk: int) -> LossFunction:
    """The way of that name."""
    ways: dict[str, LossFunction] = {
        "nothing": baseline_loss,
        "at once": full_loss,
        "chunks": lambda *given: chunked_loss(*given, chunk=chunk),
    }
    return ways[name]


def measure_once(loss_fn: LossFunction, args: argparse.Namespace) -> None:
    """Forward and backward once; print the peak in MiB, the seconds, and the gradient's norm."""
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    count = args.rows * args.actions
    head = nn.Linear(args.hidden, args.vocabulary, bias=False)
    hidden = torch.randn(count, args.hidden, requires_grad=True)
    token = torch.randint(args.vocabulary, (count,))
    start = time.perf_counter()
    loss_fn(hidden, token, head).backward()
    seconds = time.perf_counter() - start
    assert hidden.grad is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB  # KiB on Linux
    print(peak, seconds, hidden.grad.norm().item())


def measure_in_process(
    name: str, chunk: int, args: argparse.Namespace
) -> tuple[float, float, float]:
    """What `run` printed in a process of its own."""
    numbers = (args.rows, args.actions, args.hidden, args.vocabulary, args.threads)
    command = [sys.executable, __file__, "--run", name, "--chunk", str(chunk)]
    flags = ("--rows", "--actions", "--hidden", "--vocabulary", "--threads")
    for flag, number in zip(flags, numbers, strict=True):
        command += [flag, str(number)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    peak, seconds, norm = map(float, said)
    return peak, seconds, norm


def print_table(args: argparse.Namespace) -> None:
    """Print what every way adds to what is there anyway, and how many times less chunks need."""
    there, _, _ = measure_in_process("nothing", LOGITS_PER_CHUNK, args)
    whole, slow, norm = measure_in_process("at once", LOGITS_PER_CHUNK, args)
    print(f"{args.rows} x {args.actions} actions, vocabulary {args.vocabulary}, ", end="")
    print(f"hidden {args.hidden}; inputs, head and their gradients: {there:.0f} MiB\n")
    print("| way | peak above that, MiB | ratio | seconds |\n|---|---|---|---|")
    print(f"| at once | {whole - there:.0f} | 1 | {slow:.1f} |")
    for chunk in args.chunks:
        peak, seconds, other = measure_in_process("chunks", chunk, args)
        assert abs(other / norm - 1) < 1e-3, "both ways have one gradient"
        ratio = (whole - there) / (peak - there)
        print(f"| chunks of {chunk:,} | {peak - there:.0f} | {ratio:.1f} | {seconds:.1f} |")


def main() -> None:
    """One measurement with `--run`, else the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    for name, value in {"rows": 4, "actions": 512, "hidden": 256, "vocabulary": 150_000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=LOGITS_PER_CHUNK)
    parser.add_argument(
        "--chunks", type=int, nargs="+", default=[LOGITS_PER_CHUNK, 4 * LOGITS_PER_CHUNK]
    )
    parser.add_argument("--run", default="")
    args = parser.parse_args()
    measure_once(loss_function(args.run, args.chunk), args) if args.run else print_table(args)


if __name__ == "__main__":
    main()
