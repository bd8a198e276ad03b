"""The signatures from which typer builds its commands, made from the declarations in `options`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from sessionlog.cli.completion import completer
from sessionlog.cli.options import Option


def typer_parameter(option: Option) -> Any:
    """Return typer's description of an option or argument."""
    shown: str | bool = True if option.default_help is None else option.default_help
    if not option.name:
        return typer.Argument(
            metavar=option.metavar, help=option.help, show_default=shown, autocompletion=completer(option)
        )
    names = (option.name, option.short) if option.short else (option.name,)
    return typer.Option(
        *names, metavar=option.metavar, help=option.help, show_default=shown, min=option.least, max=option.most,
        autocompletion=completer(option), callback=None if option.may_be_empty else _not_empty,
    )  # fmt: skip


def _not_empty(value: Any) -> Any:
    """Return an option's value.

    Raises:
        typer.BadParameter: It is an empty text, as a variable that is not set gives it.
    """
    if any(isinstance(text, str) and not text.strip() for text in (value if isinstance(value, list) else [value])):
        raise typer.BadParameter("it is empty: give it a value, or leave the option out")
    return value


_TYPES: Mapping[str, tuple[Any, Any]] = {
    "text": (str, str | None),
    "texts": (list[str], list[str] | None),
    "rest": (list[str], list[str] | None),
    "number": (int, int | None),
    "decimal": (float, float | None),
    "flag": (bool, bool),
}
"""By kind: the type of a setting that has a default, and of one that may be None."""


def declare(command: Callable[..., Any], declaration: Sequence[Option], *, context: type | None = None) -> None:
    """Give a command's function the signature that its declaration describes, behind typer's `context`."""
    parameters = [_parameter(option) for option in declaration]
    if context is not None:
        parameters.insert(0, Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=context))
    command.__signature__ = Signature(parameters, return_annotation=None)  # type: ignore[attr-defined] # inspect's hook
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _parameter(option: Option) -> Parameter:
    always, may_be_none = _TYPES[option.kind]
    kind = may_be_none if option.default is None and not option.required else always
    return Parameter(
        option.setting,
        Parameter.KEYWORD_ONLY if option.name else Parameter.POSITIONAL_OR_KEYWORD,
        default=Parameter.empty if option.required else option.default,
        annotation=Annotated[kind, typer_parameter(option)],
    )
