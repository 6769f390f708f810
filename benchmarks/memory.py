"""Measure the peak memory of log-probabilities and entropies: in chunks, and with full logits.

    python benchmarks/memory.py --rows 4 --actions 512 --hidden 256

Each measurement runs forward and backward once in its own process. The peak is the resident memory
of that process minus that of a process which only holds the inputs and their gradients.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from grupo.inference.sampling_params import Sampling
from grupo.kernels.hidden_states import HiddenStates
from grupo.models.token_statistics import LOGITS_PER_CHUNK, TokenDistributions, token_signals

MIB = 1 << 20
LossFunction = Callable[[Tensor, Tensor, nn.Linear], Tensor]


def chunked_loss(hidden: Tensor, token: Tensor, head: nn.Linear, *, chunk: int) -> Tensor:
    """Compute log-probabilities and entropies as the policies do, chunk by chunk."""
    distributions = TokenDistributions(HiddenStates(hidden), token, head, Sampling())
    signals = token_signals(distributions, ("logp", "entropy"), logits_per_chunk=chunk)
    return (signals["logp"] + signals["entropy"]).sum()


def full_loss(hidden: Tensor, token: Tensor, head: nn.Linear) -> Tensor:
    """Compute all logits of all actions, then log-probabilities and entropies."""
    logp = head(hidden).log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    return (logp.gather(1, token[:, None])[:, 0] + entropy).sum()


def baseline_loss(hidden: Tensor, token: Tensor, head: nn.Linear) -> Tensor:
    """Use only the inputs and the head, with a gradient for each."""
    return hidden.sum() + head.weight.sum() + 0 * token.sum()


def loss_function(name: str, chunk: int) -> LossFunction:
    """Return the loss function of that name."""
    functions: dict[str, LossFunction] = {
        "baseline": baseline_loss,
        "full": full_loss,
        "chunks": partial(chunked_loss, chunk=chunk),
    }
    return functions[name]


def measure_once(loss_fn: LossFunction, args: argparse.Namespace) -> None:
    """Run forward and backward once; print peak MiB, seconds and the norm of the gradient."""
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
    """Return what `measure_once` prints in its own process: MiB, seconds, gradient norm."""
    sizes = (args.rows, args.actions, args.hidden, args.vocabulary, args.threads)
    command = [sys.executable, __file__, "--run", name, "--chunk", str(chunk)]
    flags = ("--rows", "--actions", "--hidden", "--vocabulary", "--threads")
    for flag, size in zip(flags, sizes, strict=True):
        command += [flag, str(size)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    peak, seconds, norm = map(float, output.split())
    return peak, seconds, norm


def print_table(args: argparse.Namespace) -> None:
    """Print the peak memory of each loss above the baseline, and the ratio of full to chunked."""
    baseline, _, _ = measure_in_process("baseline", LOGITS_PER_CHUNK, args)
    full_peak, full_seconds, norm = measure_in_process("full", LOGITS_PER_CHUNK, args)
    full_memory = full_peak - baseline
    print(f"{args.rows} x {args.actions} actions, vocabulary {args.vocabulary}, ", end="")
    print(f"hidden {args.hidden}; inputs, head and their gradients: {baseline:.0f} MiB\n")
    print("| logits | peak above that, MiB | ratio | seconds |\n|---|---|---|---|")
    print(f"| full | {full_memory:.0f} | 1 | {full_seconds:.1f} |")
    for chunk in args.chunks:
        peak, seconds, chunked_norm = measure_in_process("chunks", chunk, args)
        assert abs(chunked_norm / norm - 1) < 1e-3, "the gradients differ"
        memory = peak - baseline
        ratio = full_memory / memory
        print(f"| chunks of {chunk:,} | {memory:.0f} | {ratio:.1f} | {seconds:.1f} |")


def main() -> None:
    """Print the table, or with `--run` one measurement."""
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
    if args.run:
        measure_once(loss_function(args.run, args.chunk), args)
    else:
        print_table(args)


if __name__ == "__main__":
    main()
