"""`python -m bifactor`: the command."""

from bifactor.cli.main import main

if __name__ == "__main__":
    main(prog_name="bifactor")
