"""Predictions as a table."""

from collections.abc import Sequence

from rich.table import Table

from grupo.evidence.simulate.events import Machine, Prediction, Workload

COLUMNS = (
    "trainers",
    "servers",
    "stale",
    "tokens",
    "s/step",
    "idle",
    "busy",
    "age",
    "oldest",
)


def prediction_table(rows: Sequence[tuple[Machine, Workload, Prediction]]) -> Table:
    """A row for each prediction.

    "stale" is `max_staleness`, and "tokens" is `tokens_per_step`. "idle" is the fraction of time in
    which trainers do not update, and "busy" the fraction in which generators generate. "age" and
    "oldest" are the mean and the largest age of the weights that generated a token, in updates.
    """
    table = Table(title="predicted", title_style="")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for machine, job, prediction in rows:
        table.add_row(
            str(machine.trainers),
            str(machine.servers or "-"),
            str(job.max_staleness),
            str(job.tokens_per_step or "-"),
            f"{prediction.seconds:.3g}",
            f"{prediction.trainer_idle:.0%}",
            f"{prediction.generators_busy:.0%}",
            f"{prediction.staleness:.2f}",
            str(prediction.oldest),
        )
    return table
