"""`python -m grupo` is `grupo`."""

from grupo.cli import main

if __name__ == "__main__":
    main()
