"""Published models that `--model` knows by a short name, fetched from the package index."""
