"""HTML reports of one or several runs: a single file, or a local server that follows the runs."""
