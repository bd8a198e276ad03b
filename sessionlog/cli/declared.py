"""Typer's side of the declarations: the signature from which it builds a command, and the parts that others share.

Typer reads a function's signature. A declared command's function has plain settings; what typer is to know of them is
added here, from `options`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from sessionlog.cli import options
from sessionlog.cli.options import Option


def info(option: Option) -> Any:
    """Return what typer calls the option or argument."""
    shown: str | bool = True if option.shown is None else option.shown
    if not option.name:
        return typer.Argument(metavar=option.metavar, help=option.says, show_default=shown)
    names = (option.name, option.short) if option.short else (option.name,)
    return typer.Option(
        *names, metavar=option.metavar, help=option.says, show_default=shown, min=option.least, max=option.most
    )


Paths = Annotated[list[str] | None, info(options.PATHS)]
Since = Annotated[str | None, info(options.SINCE)]
Until = Annotated[str | None, info(options.UNTIL)]
Source = Annotated[list[str] | None, info(options.SOURCE)]
Zone = Annotated[str | None, info(options.TZ)]
Now = Annotated[str | None, info(options.NOW)]
Prices = Annotated[str | None, info(options.PRICES)]
AsJson = Annotated[bool, info(options.AS_JSON)]
AsCsv = Annotated[bool, info(options.AS_CSV)]
AsMarkdown = Annotated[bool, info(options.AS_MARKDOWN)]
Jobs = Annotated[int | None, info(options.JOBS)]
Ledger = Annotated[str | None, typer.Option("--ledger", metavar="FILE", help="This ledger instead of the usual one.")]
Target = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE|SESSION", help="A log, or the beginning of a session's id.", show_default="the newest session"
    ),
]
Directory = Annotated[str | None, typer.Option("--dir", metavar="FOLDER", help="The folder of sessions.")]

_TYPES: Mapping[str, tuple[Any, Any]] = {
    "text": (str, str | None),
    "texts": (list[str], list[str] | None),
    "number": (int, int | None),
    "flag": (bool, bool),
}
"""By kind: the type of a setting that has a default, and of one that may be None."""


def declare(command: Callable[..., Any], declaration: Sequence[Option]) -> None:
    """Give a command's function the signature that its declaration describes."""
    parameters = [_parameter(option) for option in declaration]
    command.__signature__ = Signature(parameters, return_annotation=None)  # type: ignore[attr-defined] # inspect's hook
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _parameter(option: Option) -> Parameter:
    with_default, may_be_none = _TYPES[option.kind]
    return Parameter(
        option.to,
        Parameter.KEYWORD_ONLY if option.name else Parameter.POSITIONAL_OR_KEYWORD,
        default=option.default,
        annotation=Annotated[may_be_none if option.default is None else with_default, info(option)],
    )
