"""`dataclass` with slots, as in the standard library, for programs that start often.

The standard library's imports `inspect` and compiles six functions for each class: together 30 ms of a report that took
100. Here `__init__` is compiled for the first instance of a class, and the other methods are shared by all classes.
`dataclasses.fields`, `asdict`, `replace` and `is_dataclass` work: the standard library makes the fields they ask for.
"""

from __future__ import annotations

__all__ = ["annotations_of", "dataclass", "field", "fields_of", "replace"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from dataclasses import dataclass, field, replace
    from typing import Any, Never
else:
    from operator import attrgetter

    _MISSING = object()

    class _Parameters:
        """What the standard library asks a base of one of its dataclasses."""

        __slots__ = ("frozen",)

        def __init__(self, *, frozen: bool) -> None:
            self.frozen = frozen

    class _Field:
        """A field of a class.

        Attributes:
            name: Its name.
            annotation: Its type, as text.
            settings: Those of `dataclasses.field`, among them always `kw_only`.
        """

        __slots__ = ("annotation", "name", "settings")

        def __init__(self, name: str, annotation: str, settings: Mapping[str, Any]) -> None:
            self.name, self.annotation, self.settings = name, annotation, settings

    def field(**settings: Any) -> _Field:
        """As `dataclasses.field`, with `default`, `default_factory`, `init`, `repr`, `compare` and `kw_only`."""
        return _Field("", "", settings)

    def replace(value: Any, /, **changes: Any) -> Any:
        """As `dataclasses.replace`."""
        given = {one.name: getattr(value, one.name) for one in value._fields if one.settings.get("init", True)}
        return type(value)(**given | changes)

    def dataclass(
        *, frozen: bool = False, slots: bool, kw_only: bool = False, eq: bool = True, unsafe_hash: bool = False
    ) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, always with `slots=True`."""
        assert slots

        def make(cls: type) -> type:
            own = _own_fields(cls, kw_only=kw_only)
            cls = _with_slots(cls, own)
            fields = {one.name: one for base in cls.__mro__[:0:-1] for one in base.__dict__.get("_fields", ())}
            cls._fields = tuple((fields | own).values())
            cls.__match_args__ = tuple(
                one.name for one in cls._fields if not one.settings["kw_only"] and one.settings.get("init", True)
            )
            cls.__dataclass_params__ = _Parameters(frozen=frozen)
            compared = [one.name for one in cls._fields if one.settings.get("compare", True)]
            cls._compared = attrgetter(*compared) if compared else type
            methods = {"__init__": _first_init(cls, frozen=frozen), "__repr__": _repr}
            if eq:
                methods |= {"__eq__": _equals, "__hash__": _hash if frozen or unsafe_hash else None}
            if frozen:
                methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
            for name, method in methods.items():
                if cls.__dict__.get(name) is None and (method or name == "__hash__"):
                    setattr(cls, name, method)
            return cls

        return make

    class _StandardFields:
        """The fields of a class as `dataclasses` knows them, made when something asks for them."""

        def __init__(self) -> None:
            self._made = {}

        def __get__(self, value: object, cls: type) -> dict[str, Any]:
            if cls not in self._made:
                from dataclasses import field, make_dataclass

                fields = [(one.name, one.annotation, field(**one.settings)) for one in cls._fields]
                self._made[cls] = make_dataclass(cls.__name__, fields).__dataclass_fields__
            return self._made[cls]

    class _Dataclass:
        """The base of all of these classes."""

        __slots__ = ()
        __dataclass_fields__ = _StandardFields()
        __replace__ = replace

        def __getstate__(self) -> list[Any]:
            return [getattr(self, one.name) for one in self._fields]

        def __setstate__(self, state: list[Any]) -> None:
            for one, value in zip(self._fields, state, strict=True):
                object.__setattr__(self, one.name, value)

    def _own_fields(cls: type, *, kw_only: bool) -> dict[str, _Field]:
        fields = {}
        for name, annotation in cls.__annotations__.items():
            if annotation.startswith("ClassVar"):
                continue
            given = cls.__dict__.get(name, _MISSING)
            settings = given.settings if isinstance(given, _Field) else {}
            if isinstance(given, list | dict | set):
                raise ValueError(f"mutable default {type(given)} for field {name} is not allowed: use default_factory")  # noqa: TRY004 - as there
            if given is not _MISSING and not isinstance(given, _Field):
                settings = {"default": given}
            fields[name] = _Field(name, annotation, {"kw_only": kw_only, **settings})
        return fields

    def _with_slots(cls: type, names: Iterable[str]) -> type:
        """Return the class once more, with slots."""
        namespace = {
            name: value for name, value in cls.__dict__.items() if name not in {*names, "__dict__", "__weakref__"}
        }
        bases = tuple(base for base in cls.__bases__ if base is not object)
        if not issubclass(cls, _Dataclass):
            bases += (_Dataclass,)
        made = type(cls)(cls.__name__, bases, namespace | {"__slots__": tuple(names)})
        made.__qualname__ = cls.__qualname__
        return made

    def _first_init(cls: type, *, frozen: bool) -> Callable[..., None]:
        """Return an `__init__` that is replaced with a compiled one when it is first called."""

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            cls.__init__ = _compiled_init(cls, frozen=frozen)
            cls.__init__(self, *args, **kwargs)

        return __init__

    def _compiled_init(cls: type, *, frozen: bool) -> Callable[..., None]:
        names = {"_MISSING": _MISSING}
        positional, by_name, body = [], [], []
        for one in cls._fields:
            name, settings = one.name, one.settings
            value = parameter = name
            if "default" in settings:
                names[f"_default_{name}"] = settings["default"]
                parameter = f"{name}=_default_{name}"
            elif "default_factory" in settings:
                names[f"_make_{name}"] = settings["default_factory"]
                parameter, value = f"{name}=_MISSING", f"_make_{name}() if {name} is _MISSING else {name}"
            if settings.get("init", True):
                (by_name if settings["kw_only"] else positional).append(parameter)
            elif "default" in settings:
                value = f"_default_{name}"
            elif "default_factory" in settings:
                value = f"_make_{name}()"
            else:
                continue
            names[f"_set_{name}"] = getattr(cls, name).__set__  # past the __setattr__ of a frozen class
            body.append(f"_set_{name}(self, {value})" if frozen else f"self.{name} = {value}")
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        parameters = ", ".join(["self", *positional, *(["*", *by_name] if by_name else [])])
        exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), names)  # noqa: S102 - names of our fields
        made = names["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        return made

    def _repr(self: Any) -> str:
        shown = (one.name for one in self._fields if one.settings.get("repr", True))
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def _equals(self: Any, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._compared(self) == self._compared(other)

    def _hash(self: Any) -> int:
        return hash(self._compared(self))

    def _refuse(_: object, name: str, *value: object) -> Never:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a value by name, not copied."""
    return {one.name: getattr(value, one.name) for one in value._fields}


def annotations_of(cls: Any) -> dict[str, str]:
    """Return the fields of a class by name, each with its annotation as text."""
    return {one.name: one.annotation for one in cls._fields}
