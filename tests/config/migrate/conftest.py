"""The files are read by the tests, and not collected: they import the other libraries."""

collect_ignore_glob = ["files/*"]
