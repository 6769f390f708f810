"""grupo report, watch."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from grupo.core.console import out, print_line

RunFolders = Annotated[list[Path], Argument(metavar="RUN …", help="Folders of runs.")]


def report(
    runs: RunFolders,
    out_file: Annotated[Path, Option("--out", help="The file.")] = Path("report.html"),
) -> None:
    """Write runs as one HTML file that needs no server and no network.

    Curves, groups with every action, the ledger, the recipe, the doctor's findings.
    """
    from grupo.report.html.build import write_html_report as write

    written = write(runs, out_file)
    print_line(f"The report is in {written}, {written.stat().st_size / 1e6:.1f} MB")


def watch(
    runs: RunFolders,
    text: Annotated[bool, Option("--text", help="On this terminal, without a browser.")] = False,
    port: Annotated[int, Option(min=0, max=65535, help="0: any that is free.")] = 0,
) -> None:
    """Look on while runs go: the report, live, from a server that only this machine reaches."""
    if text:
        from grupo.report.terminal_dashboard import watch_runs as show

        return show(runs, out)
    from grupo.report.html.server import ReportServer

    with ReportServer(runs, port) as server, suppress(KeyboardInterrupt):
        here = server.server_port
        print_line(server.url)
        print_line(
            f"Ctrl-C ends it. From afar: ssh -L {here}:127.0.0.1:{here} HOST, then this address."
        )
        server.serve_forever()
