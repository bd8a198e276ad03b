"""find_mutants: a module's source → each small change that a test should notice.

A mutant replaces one piece of the text and keeps every line number. Texts, docstrings, type hints, decorators, imports,
`assert` and `__slots__` are left alone: a change of them changes nothing that is promised.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_FLIPPED: dict[type[ast.cmpop], tuple[bytes, bytes]] = {
    ast.Lt: (b"<", b"<="),
    ast.LtE: (b"<=", b"<"),
    ast.Gt: (b">", b">="),
    ast.GtE: (b">=", b">"),
    ast.Eq: (b"==", b"!="),
    ast.NotEq: (b"!=", b"=="),
    ast.Is: (b"is", b"is not"),
    ast.IsNot: (b"is not", b"is"),
    ast.In: (b"in", b"not in"),
    ast.NotIn: (b"not in", b"in"),
}
_SWAPPED: dict[type[ast.operator], tuple[bytes, bytes]] = {
    ast.Add: (b"+", b"-"),
    ast.Sub: (b"-", b"+"),
    ast.Mult: (b"*", b"+"),
    ast.FloorDiv: (b"//", b"*"),
    ast.Mod: (b"%", b"*"),
    ast.LShift: (b"<<", b">>"),
    ast.BitAnd: (b"&", b"|"),
    ast.BitOr: (b"|", b"&"),
}
_NOT_MUTATED = {"__all__", "__slots__", "TYPE_CHECKING"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module.

    Attributes:
        path: The module, from the project's folder.
        function: Qualified name of the function or class it is in, "" for the module itself.
        in_body: It is in a function's body: the function can be replaced while the module stays loaded.
        operator: What kind of change.
        line: Where it begins, from 1.
        lines: First and last line of the statement (of a compound one: its head): the lines that a test must run.
        start: Offset of the first byte replaced.
        end: Offset behind the last byte replaced.
        old: The bytes replaced.
        new: What takes their place.
        key: A name that other changes of the module do not alter.
    """

    path: str
    function: str
    in_body: bool
    operator: str
    line: int
    lines: tuple[int, int]
    start: int
    end: int
    old: bytes
    new: bytes
    key: str = ""

    def apply(self, source: bytes) -> bytes:
        """Return the module's source with this change."""
        return source[: self.start] + self.new + source[self.end :]

    def __str__(self) -> str:
        old, new = (b" ".join(part.split()).decode() for part in (self.old, self.new))
        return f"{self.path}:{self.line} in {self.function or 'the module'}: {self.operator}: {old} → {new}"


def find_mutants(path: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a module, in the order of its text."""
    found = sorted(_Finder(path, source).visit_all(), key=lambda mutant: (mutant.start, mutant.operator, mutant.new))
    seen: Counter[str] = Counter()
    named = []
    for mutant in found:
        words = (mutant.path, mutant.function, mutant.operator, mutant.old.decode(), mutant.new.decode())
        text = "\0".join(words)
        key = hashlib.sha256(f"{text}\0{seen[text]}".encode()).hexdigest()[:16]
        seen[text] += 1
        fields = {name: getattr(mutant, name) for name in mutant.__slots__} | {"key": key}
        named.append(Mutant(**fields))
    return named


class _Finder:
    """One walk over a module's tree."""

    def __init__(self, path: str, source: bytes) -> None:
        self._path = path
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._scope: list[str] = []
        self._in_body = False
        self._statement = (1, 1)

    def visit_all(self) -> Iterator[Mutant]:
        yield from self._body(ast.parse(self._source).body)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _mutant(self, operator: str, start: int, end: int, new: bytes) -> Mutant:
        old = self._source[start:end]
        new += b"\n" * (old.count(b"\n") - new.count(b"\n"))
        return Mutant(
            path=self._path,
            function=".".join(self._scope),
            in_body=self._in_body,
            operator=operator,
            line=self._source.count(b"\n", 0, start) + 1,
            lines=self._statement,
            start=start,
            end=end,
            old=old,
            new=new,
        )

    def _replaced(self, operator: str, node: ast.expr | ast.stmt, new: bytes) -> Mutant:
        return self._mutant(operator, *self._span(node), new)

    def _body(self, statements: list[ast.stmt]) -> Iterator[Mutant]:
        for statement in statements:
            yield from self._one_statement(statement)

    def _one_statement(self, node: ast.stmt) -> Iterator[Mutant]:
        assert node.end_lineno is not None
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from self._definition(node)
            case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass() | ast.Global() | ast.Nonlocal():
                return
            case ast.If() | ast.While():
                if isinstance(node.test, ast.Name) and node.test.id in _NOT_MUTATED:
                    return
                self._statement = (node.lineno, node.test.end_lineno or node.lineno)
                yield from self._condition(node.test)
                yield from self._body([*node.body, *node.orelse])
            case ast.For() | ast.AsyncFor():
                self._statement = (node.lineno, node.iter.end_lineno or node.lineno)
                yield from self._expression(node.iter)
                yield from self._body([*node.body, *node.orelse])
            case ast.With() | ast.AsyncWith():
                self._statement = (node.lineno, node.items[-1].context_expr.end_lineno or node.lineno)
                for item in node.items:
                    yield from self._expression(item.context_expr)
                yield from self._body(node.body)
            case ast.Try():
                yield from self._body(node.body)
                for handler in node.handlers:
                    yield from self._body(handler.body)
                yield from self._body([*node.orelse, *node.finalbody])
            case _:
                self._statement = (node.lineno, node.end_lineno)
                yield from self._simple(node)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[Mutant]:
        outer = self._scope, self._in_body
        self._scope = [*self._scope, node.name]
        if not isinstance(node, ast.ClassDef):
            for default in [*node.args.defaults, *(item for item in node.args.kw_defaults if item)]:
                self._statement = (node.body[0].lineno, node.body[-1].end_lineno or node.lineno)
                yield from self._expression(default)
            self._in_body = True
        yield from self._body(node.body)
        self._scope, self._in_body = outer

    def _simple(self, node: ast.stmt) -> Iterator[Mutant]:
        """A statement without a body: gone, and its parts changed."""
        match node:
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Expr():
                yield self._replaced("statement removed", node, b"pass")
                yield from self._expression(node.value)
            case ast.Assign(targets=[target, *_]):
                if isinstance(target, ast.Name) and target.id in _NOT_MUTATED:
                    return
                if self._in_body and isinstance(target, ast.Attribute | ast.Subscript):
                    yield self._replaced("assignment removed", node, b"pass")
                yield from self._expression(node.value)
            case ast.AnnAssign() if node.value is not None:
                yield from self._expression(node.value)
            case ast.AugAssign():
                yield self._replaced("assignment removed", node, b"pass")
                yield from self._expression(node.value)
            case ast.Return() if node.value is not None:
                if not isinstance(node.value, ast.Constant):
                    yield self._replaced("returns None", node, b"return None")
                yield from self._expression(node.value)
            case ast.Raise():
                yield self._replaced("raise removed", node, b"pass")
            case ast.Delete() | ast.Break() | ast.Continue():
                yield self._replaced("statement removed", node, b"pass")
            case _:
                return

    def _condition(self, test: ast.expr) -> Iterator[Mutant]:
        """A test of if and while: turned round, unless a change of its operator does the same."""
        turned = isinstance(test, ast.Compare) and not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        negative = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        if not (turned or negative):
            start, end = self._span(test)
            yield self._mutant("condition negated", start, end, b"not (" + self._source[start:end] + b")")
        yield from self._expression(test)

    def _expression(self, node: ast.expr) -> Iterator[Mutant]:
        match node:
            case ast.JoinedStr():  # what is shown; and its parts have no true places before Python 3.12
                return
            case ast.Constant(value=bool()):
                yield self._replaced("constant", node, b"False" if node.value else b"True")
            case ast.Constant(value=int()):
                yield self._replaced("constant", node, str(int(node.value) + 1).encode())
                yield self._replaced("constant", node, str(int(node.value) - 1).encode())
            case ast.Compare():
                yield from self._comparison(node)
            case ast.BoolOp():
                word, other = (b"and", b"or") if isinstance(node.op, ast.And) else (b"or", b"and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self._between("and/or", left, right, word, other)
            case ast.BinOp() if type(node.op) in _SWAPPED:
                if not (isinstance(node.op, ast.Mod | ast.Add) and _is_text(node)):
                    yield from self._between("arithmetic", node.left, node.right, *_SWAPPED[type(node.op)])
            case ast.UnaryOp(op=ast.Not()):
                start, end = self._span(node)
                inner_start, _ = self._span(node.operand)
                yield self._mutant("not removed", start, end, self._source[start + 3 : end].lstrip() or b"")
                assert inner_start > start
            case ast.IfExp():
                start, end = self._span(node.test)
                yield self._mutant("condition negated", start, end, b"not (" + self._source[start:end] + b")")
            case ast.Lambda():
                yield from self._expression(node.body)
                return
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self._expression(child)
            elif isinstance(child, ast.keyword):
                yield from self._expression(child.value)
            elif isinstance(child, ast.comprehension):
                yield from self._expression(child.iter)
                for test in child.ifs:
                    yield from self._condition(test)

    def _comparison(self, node: ast.Compare) -> Iterator[Mutant]:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            yield from self._between("comparison", left, right, *_FLIPPED[type(operator)])

    def _between(self, operator: str, left: ast.expr, right: ast.expr, old: bytes, new: bytes) -> Iterator[Mutant]:
        """The operator's word, which is the only text between two operands but brackets, spaces and comments."""
        start, end = self._span(left)[1], self._span(right)[0]
        at = self._source.find(old, start, end)
        if at >= 0 and b"#" not in self._source[start:at]:
            yield self._mutant(operator, at, at + len(old), new)


def _is_text(node: ast.BinOp) -> bool:
    """Whether an operand is visibly text: formatting and joining are no arithmetic."""
    return any(isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str | bytes))
               for part in (node.left, node.right))  # fmt: skip
