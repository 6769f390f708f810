"""Commands that show runs: `grupo report` and `grupo watch`."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from grupo.cli.paths import out_path, run_folder_argument
from grupo.util.console import out, print_line

RunFolders = Annotated[
    list[Path], Argument(metavar="RUN …", parser=run_folder_argument, help="Folders of runs.")
]


def report(
    runs: RunFolders,
    out_file: Annotated[Path, Option("--out", parser=out_path, help="The HTML file.")] = Path(
        "report.html"
    ),
) -> None:
    """Write runs as one HTML file that needs neither server nor network.

    It has curves, groups with every response, a token account, the recipe and the doctor's
    findings.
    """
    from grupo.report.html.build import write_html_report

    path = write_html_report(runs, out_file)
    print_line(f"The report is in {path}, {path.stat().st_size / 1e6:.1f} MB")


def watch(
    runs: RunFolders,
    text: Annotated[bool, Option("--text", help="Show the runs in this terminal.")] = False,
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0: any free one.")] = 0,
) -> None:
    """Watch runs in progress: the report, live, from a server for this machine only."""
    if text:
        from grupo.report.terminal_dashboard import watch_runs

        return watch_runs(runs, out)
    from grupo.report.html.server import ReportServer

    with ReportServer(runs, port) as server, suppress(KeyboardInterrupt):
        port = server.server_port
        print_line(server.url)
        print_line(
            f"Press Ctrl-C to stop. From another machine: ssh -L {port}:127.0.0.1:{port} HOST,"
            " then open this address."
        )
        server.serve_forever()
