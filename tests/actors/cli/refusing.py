"""A wrong call, made inside the process of the tests: it ends before anything of the command has begun."""

from actors.cli import main


def refused(*arguments: str) -> int:
    """The exit code of a call that makes no sense."""
    try:
        return main(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else -1
