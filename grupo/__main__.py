"""`python -m grupo` runs the command line."""

from grupo.cli import main

if __name__ == "__main__":
    main()
