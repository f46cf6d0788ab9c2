"""The command line: a parser and one file per command."""
