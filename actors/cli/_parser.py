"""How the command line is read: no option is guessed, and what is wrong is one line that names it and what is near."""

import argparse
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

__all__ = ["Parser", "Version", "cut_in_two"]

PLACEHOLDER = "CMD"
_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_HELP = ("-h", "--help")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as everything else of ours does; takes options by their whole names alone."""

    def __init__(self, **described: Any) -> None:
        super().__init__(allow_abbrev=False, **described)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]  # Two overloads, and both are taken.
        self, args: Any = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Refuse what is not known here, where the names are: the one who asks would not know them."""
        given = list(sys.argv[1:] if args is None else args)
        if given and _is_option(given[0]) and self.takes_value(given[0]) is None:
            self.refuse_option(given[0])
        chosen, rest = super().parse_known_args(given, namespace)
        for word in rest:
            if _is_option(word):
                self.refuse_option(word)
            if word != "--":
                self.error(f"nothing takes the word {word!a}")
        return chosen, []

    def takes_value(self, word: str) -> bool | None:
        """Whether an option is followed by a value; None when there is no such option."""
        name = word.partition("=")[0]
        action = self._option_string_actions.get(name)
        return None if action is None else action.nargs != 0

    def refuse_option(self, word: str) -> NoReturn:
        """End the program over an option that is none, and name the one that is perhaps meant."""
        name = word.partition("=")[0]  # What stands behind it may be a secret.
        near = _near(name, self._option_string_actions)
        self.error(f"there is no option {name}" + (f"; perhaps {' or '.join(near)} is meant" if near else ""))


class Version(argparse.Action):
    """Looks the version up when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib import metadata  # Only here: the import is a good part of a quick start.

        try:
            version = metadata.version("greenroom")
        except metadata.PackageNotFoundError:
            version = "(not installed: run from its sources)"
        print(f"greenroom {version}, Python {'.'.join(map(str, sys.version_info[:3]))}")
        parser.exit()


def cut_in_two(given: Sequence[str], run: Parser) -> tuple[list[str], list[str]]:
    """Part the words of `run` from those of its command: from the first `--`, or the second word that is no option.

    Returns:
        Our words, with a placeholder where argparse expects the command, and the command.
    """
    at, is_executor_seen = 0, False
    while at < len(given):
        word = given[at]
        if word == "--" or (is_executor_seen and not _is_option(word)):
            break
        is_executor_seen = is_executor_seen or not _is_option(word)
        at += 2 if _is_option(word) and _needs_next(word, given[at + 1 : at + 2], run) else 1
    ours, theirs = [*given[:at]], [*given[at + (given[at : at + 1] == ["--"]) :]]
    if not {*_HELP}.isdisjoint(ours):
        return ours, []
    if not is_executor_seen:
        run.error("EXECUTOR is missing: an address, or an environment id with --registry, before the command")
    if not theirs:
        run.error("the command is missing: what to run in the executor, after --")
    return [*ours, PLACEHOLDER], theirs


def _needs_next(word: str, following: Sequence[str], run: Parser) -> bool:
    """Whether the next word is the value of this option; one that has none ends the program."""
    if (takes_value := run.takes_value(word)) is None:
        run.refuse_option(word)
    if not takes_value or "=" in word:
        return False
    if not following or following[0] == "--" or (_is_option(following[0]) and not _NUMBER.fullmatch(following[0])):
        run.error(f"{word} needs a value; one that begins with a dash is written {word}=VALUE")
    return True


def _is_option(word: str) -> bool:
    return word.startswith("-") and word not in {"-", "--"}


def _near(name: str, known: Collection[str]) -> Iterable[str]:
    """Whole names that begin with it or hold it; else the one that is spelled most like it."""
    bare = name.strip("-")
    long = [each for each in known if each.startswith("--")]
    return (
        [each for each in long if bare and each.startswith(f"--{bare}")]
        or [each for each in long if len(bare) > 2 and bare in each]
        or get_close_matches(name, long, n=1)
    )
