"""One file per paper; a method is a function that returns a `Method`."""
