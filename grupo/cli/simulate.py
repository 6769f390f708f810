"""`grupo simulate`: how fast a run would be on other numbers of processes."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from grupo.cli.options import RunArgument
from grupo.util.console import out, print_line
from grupo.util.errors import ConfigError

if TYPE_CHECKING:
    from grupo.evidence.simulate.costs import Costs
    from grupo.evidence.simulate.events import Workload

STEPS = 20  # simulated, after some that are not counted


StaleRunOption = Annotated[
    list[Path] | None,
    Option(help="A run of the same recipe with max_staleness above 0; repeatable."),
]
SmallRunOption = Annotated[
    Path | None, Option(help="A run of the same recipe with fewer prompts per step.")
]
TrainersOption = Annotated[list[int] | None, Option(help="Processes that update; repeatable.")]
ServersOption = Annotated[
    list[int] | None, Option(help="Processes that generate; 0: the trainers; repeatable.")
]
CoresOption = Annotated[
    int, Option(help="Processors that all processes share; 0: each has its own.")
]
ContentionOption = Annotated[
    float, Option(help="How much longer work takes beside each other busy process of --cores.")
]
GenerationSlowdownOption = Annotated[
    float, Option(help="How much longer generation takes in a process that updates meanwhile.")
]
StalenessOption = Annotated[list[int] | None, Option(help="As in a recipe; repeatable.")]
TokensPerStepOption = Annotated[
    list[int] | None, Option(help="Tokens of a rollout within one step; 0: all; repeatable.")
]
PromptsOption = Annotated[int, Option(help="Instead of those of the run.")]
GroupSizeOption = Annotated[int, Option(help="Instead of that of the run.")]
LengthOption = Annotated[str, Option(help="'LogNormal(3000, 0.8)' instead of the run's answers.")]
MaxLengthOption = Annotated[int, Option(help="The limit of lengths that are drawn.")]
DecodeStepOption = Annotated[
    float, Option(help="Seconds of a decoding step, instead of the run's.")
]
DecodeRowOption = Annotated[
    float, Option(help="Seconds of a row in a decoding step, instead of the run's.")
]
UpdateTokenOption = Annotated[
    float, Option(help="Seconds of a token in an update, instead of the run's.")
]
StaleTokenOption = Annotated[
    float, Option(help="What it is more with max_staleness above 0, instead of the run's.")
]
ForwardTokenOption = Annotated[
    float, Option(help="Seconds of a token in a forward pass, instead of the run's.")
]
ReceiveTokenOption = Annotated[
    float, Option(help="Seconds in which a rank reads another rank's token; else measured here.")
]
GradientSumOption = Annotated[
    float, Option(help="Seconds of summing two ranks' gradients; else by their size.")
]
WeightTransferOption = Annotated[
    float, Option(help="Seconds of handing new weights to the servers.")
]


def simulate(
    run: RunArgument,
    stale_run: StaleRunOption = None,
    small_run: SmallRunOption = None,
    trainers: TrainersOption = None,
    servers: ServersOption = None,
    cores: CoresOption = 0,
    contention: ContentionOption = 0.0,
    generation_slowdown: GenerationSlowdownOption = 0.0,
    max_staleness: StalenessOption = None,
    tokens_per_step: TokensPerStepOption = None,
    prompts_per_step: PromptsOption = 0,
    group_size: GroupSizeOption = 0,
    length: LengthOption = "",
    max_length: MaxLengthOption = 16_000,
    decode_step: DecodeStepOption = 0.0,
    decode_row: DecodeRowOption = 0.0,
    update_token: UpdateTokenOption = 0.0,
    stale_token: StaleTokenOption = 0.0,
    forward_token: ForwardTokenOption = 0.0,
    receive_token: ReceiveTokenOption = 0.0,
    gradient_sum: GradientSumOption = -1.0,
    weight_transfer: WeightTransferOption = 0.0,
) -> None:
    """Predict the seconds of a step, from the phases of a run of one process."""
    from grupo.evidence.simulate.costs import costs_of_run, measured_lengths

    _check_counts({"trainers": (trainers, 1), "servers": (servers, 0)})
    _check_counts({"max-staleness": (max_staleness, 0), "tokens-per-step": (tokens_per_step, 0)})
    _check_contention(contention, cores)
    given = _given_costs(
        decode_step=decode_step,
        decode_row=decode_row,
        update_token=update_token,
        stale_token=stale_token,
        forward_token=forward_token,
        deserialize_token=receive_token,
        weight_transfer=weight_transfer,
        generation_slowdown=generation_slowdown,
    )
    lengths = measured_lengths(run)
    measured = costs_of_run(run, lengths, stale_run or (), contention, small_run)
    costs = _with_given_costs(measured, given, gradient_sum)
    job = _job(run, lengths, length, max_length)
    job = replace(
        job, prompts=prompts_per_step or job.prompts, group_size=group_size or job.group_size
    )
    settings = (trainers or [1], servers or [0], max_staleness or [0], tokens_per_step or [0])
    _print_predictions(costs, job, settings, cores, contention)


def _print_predictions(
    costs: "Costs",
    job: "Workload",
    settings: tuple[list[int], ...],
    cores: int,
    contention: float,
) -> None:
    """Simulate every combination of trainers, servers, staleness and tokens per step."""
    from grupo.evidence.simulate.events import Machine, Simulation
    from grupo.evidence.simulate.table import prediction_table

    rows = []
    for ranks, engines, staleness, tokens in product(*settings):
        machine = Machine(ranks, engines, cores, contention)
        chosen = replace(job, max_staleness=staleness, tokens_per_step=tokens)
        rows.append((machine, chosen, Simulation(costs, machine, chosen).run(STEPS)))
    print_line(_describe(costs))
    out.print(prediction_table(rows))


def _check_contention(contention: float, cores: int) -> None:
    if contention < 0 or (contention and not cores):
        raise ConfigError(
            f"contention: {contention}, cores: {cores}. Allowed: 0, or more with cores above 0."
        )


def _check_counts(options: dict[str, tuple[list[int] | None, int]]) -> None:
    for name, (values, smallest) in options.items():
        for value in values or ():
            if value < smallest:
                raise ConfigError(f"{name}: {value}. Allowed: {smallest} or more.")


def _given_costs(**costs: float) -> dict[str, float]:
    """The costs that are not 0, which take the place of measured ones."""
    for name, value in costs.items():
        if value < 0:
            name = "receive_token" if name == "deserialize_token" else name
            raise ConfigError(f"{name.replace('_', '-')}: {value}. Allowed: 0 or more.")
    return {name: value for name, value in costs.items() if value}


def _with_given_costs(measured: "Costs", given: dict[str, float], gradient_sum: float) -> "Costs":
    """The measured costs, with those of ranks as measured here, and with the given ones."""
    from grupo.distributed.exchange_seconds import exchange_seconds

    encode, decode = exchange_seconds()
    costs = replace(measured, **{"serialize_token": encode, "deserialize_token": decode} | given)
    return replace(costs, gradient_sum=gradient_sum) if gradient_sum >= 0 else costs


def _job(run: Path, lengths: dict[int, list[int]], text: str, limit: int) -> "Workload":
    from grupo.config.answer_length import answer_limit, has_one_answer
    from grupo.evidence.simulate.events import Workload
    from grupo.evidence.simulate.lengths import MeasuredLengths, parse_lengths
    from grupo.training.resume.run_folder import RunFolder

    recipe = RunFolder.open(run).recipe
    sizes = [len(step) for step in lengths.values()]
    rollouts = round(sum(sizes) / len(sizes))
    prompts = min(recipe.prompts_per_step, rollouts)
    everything = [tokens for step in lengths.values() for tokens in step]
    longest = answer_limit(recipe) if has_one_answer(recipe) else 0
    drawn = parse_lengths(text, limit) if text else MeasuredLengths(everything, longest)
    return Workload(prompts, max(1, rollouts // prompts), drawn)


def _describe(costs: "Costs") -> str:
    return (
        f"Costs: a decoding step takes {costs.decode_step * 1e3:.3g} ms and"
        f" {costs.decode_row * 1e6:.3g} us for each row; an update {costs.update_step:.3g} s and"
        f" {costs.update_token * 1e6:.3g} us for each token, with max_staleness"
        f" {costs.stale_token * 1e6:.3g} us and"
        f" {costs.stale_step:.3g} s more; a forward pass {costs.forward_token * 1e6:.3g} us"
        f" for each token; the batch {costs.batch_row * 1e6:.3g} us for each rollout; rewards"
        f" {costs.score:.3g} s; the sum of two ranks' gradients {costs.gradient_sum:.3g} s; a rank"
        f" reads a token of the others in {costs.deserialize_token * 1e6:.3g} us."
    )
