"""Learn, write and grade exercises on sharded computation in JAX.

The exit codes of all commands:

- 0: success
- 1: a learner's work fails checks, or the course that an author tests has problems
- 2: the command could not be carried out; one line gives the reason
- 3: the grader failed for a submission or did not grade it, or an appeal's verdict differs from the stored report
"""

from __future__ import annotations

import errno
import importlib
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from grader import Mistake, __version__, stopping, wing
from grader.cli.console import UNUSABLE, err, tell
from grader.reports.untrusted import clean
from grader.sandbox.processes import end_all

# Error numbers of a full disk or quota. An OSError with such a number may have no file name.
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}

LONG = 1000  # Characters. Every command's summary is shorter, so --help shows each summary whole.
VALUE_ERROR = "Value error, "
# The groups of commands in --help, in order, each for one kind of reader. A command has the module and the name of its
# function, which is imported when the command runs, or the wing (an optional part) that offers the command.
READERS = {
    "Students": {
        "start": "learner.start",
        "list": "learner.list_",
        "show": "learner.show",
        "check": "learner.check",
        "watch": "watch.watch",
        "explain": "explain.explain",
        "submit": "learner.submit",
        "predict": "wings.predict",
        "profile": "wings.predict",
    },
    "Staff": {
        "grade": "staff.grade",
        "appeal": "appealing.appeal",
        "pages": "pages.pages",
        "export": "staff.export",
        "drop": "staff.drop",
        "nbgrader": "nbgrader.nbgrader",
        "similar": "wings.similar",
        "leaderboard": "wings.leaderboard",
    },
    "Authors": {
        "new": "author.new",
        "build": "author.build",
        "verify": "author.verify",
        "mutants": "author.mutants",
        "publish": "wings.publish",
    },
    "Machine": {"doctor": "staff.doctor", "docs": "docs.docs", "chip": "wings.chip"},
}
_PLACES = {name: place for commands in READERS.values() for name, place in commands.items()}
COMMANDS = {name: place for name, place in _PLACES.items() if not place.startswith("wings.")}
WING_OF = {name: place.removeprefix("wings.") for name, place in _PLACES.items() if name not in COMMANDS}


class Imported(Mapping[str, Any]):
    """All commands by name: first this package's commands, then the commands of wings (optional parts).

    Looking up a command imports it.
    """

    def __getitem__(self, name: str) -> Any:
        return _imported(name)

    def __iter__(self) -> Iterator[str]:
        return iter((*COMMANDS, *wing.named("commands")))

    def __len__(self) -> int:
        return len(COMMANDS) + len(wing.named("commands"))


@cache
def _imported(name: str) -> Any:
    """Import a command. Raises KeyError for an unknown name."""
    if name in COMMANDS:
        module, _, found = COMMANDS[name].partition(".")
        thing = getattr(importlib.import_module(f"grader.cli.{module}"), found)
    else:
        thing = wing.load(wing.named("commands")[name])
    if not isinstance(thing, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, cls=Command)(thing)
        return typer.main.get_command(alone)
    thing.info.cls = Group
    group = typer.main.get_command(thing)
    group.name = name
    return group


class Group(TyperGroup):
    """A group of commands whose ``--help`` shows one line for each command, with the first sentence of its help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        self.write_summaries(formatter, "Commands", self.list_commands(ctx))

    def write_summaries(self, formatter: Any, title: str, names: list[str]) -> None:
        """Write a section of the list of commands, or nothing if ``names`` is empty."""
        if names:
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=LONG)) for name in names])


class Commands(Group):
    """The group of all commands. Messages about wrong options are printed without the prefix that pydantic adds."""

    def __init__(self, **about: Any) -> None:
        super().__init__(**about)
        self.commands = Imported()  # pyright: ignore[reportAttributeAccessIssue]  # the mapping is only read

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands for ``--help`` in groups, one for each kind of reader."""
        known = self.list_commands(ctx)
        grouped = {reader: [name for name in names if name in known] for reader, names in READERS.items()}
        grouped["Other"] = [name for name in known if not any(name in names for names in grouped.values())]
        for reader, names in grouped.items():
            self.write_summaries(formatter, reader, names)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.commands and name in WING_OF:
            raise wing.missing(f"shardlings {name}", WING_OF[name])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(VALUE_ERROR)
            raise


class Command(TyperCommand):
    """A command that refuses an option that is given twice. Typer would silently use the last value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
            for param in order:
                once = param.param_type_name == "option" and not (param.multiple or param.count or param.is_flag)
                if once and order.count(param) > 1:
                    raise typer.BadParameter("appears twice; write it once", ctx, param)
        return super().parse_args(ctx, args)


HELP = """Grade sharded JAX programs, and work on the course.

Exit codes: 0 success; 1 a submission or the course has failures; 2 the command cannot run, and one line says why;
3 the grader itself failed for a submission or did not grade it, or the verdict of an appeal differs from the report.
"""

app = typer.Typer(cls=Commands, no_args_is_help=True, help=HELP, rich_markup_mode=None)


def _version(asked: bool) -> None:
    if asked:
        print(f"shardlings {__version__}")
        raise typer.Exit


@app.callback()
def _shardlings(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...


def main() -> None:
    """Run a command. A user's mistake prints one line, and Ctrl-C prints one sentence, without a traceback."""
    stopping.stop_in_order()
    try:
        run()
    except BaseException as end:
        # After Ctrl-C, the interrupted code may raise any exception.
        if stopping.asked() or isinstance(end, KeyboardInterrupt):
            end_all()
            stopping.stop()
        raise


def run() -> None:
    """Run a command. Raises SystemExit with the command's exit code."""
    try:
        app()
    except OSError as error:
        if stopping.asked() or (error.filename is None and error.errno not in FULL):
            raise
        trouble = f"cannot use {error.filename or 'the place of the output'}: {error.strerror}"
        err.print(
            f"shardlings: {clean(trouble)}; mend the cause and run the same command again",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        sys.exit(UNUSABLE)
    except Mistake as error:
        tell("shardlings", error)
        sys.exit(UNUSABLE)
