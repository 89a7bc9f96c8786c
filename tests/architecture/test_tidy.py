"""The rules of style that neither ruff nor import-linter can check.

A rule is a function from a source file to (line, message) pairs, and the message names what
to do instead. Each rule has an example that breaks it, because a rule that was never seen to
fail may not work.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Final

import pytest

from tests.architecture.source import ROOT, Source, sources

FUNCTION_LINES_MAX: Final = 60
FILE_LINES_MAX: Final = 500
TEST_FILE_LINES_MAX: Final = 800
BANNED_WORDS: Final = frozenset(
    {"common", "helper", "helpers", "manager", "mgr", "misc", "util", "utils"}
)
BANNED_IN_CORE: Final = {
    "hash": "use a keyed digest: hash() differs from run to run",
    "pow": "multiply: numpy's power differs in the last bit between machines",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Violation = tuple[int, str]
Rule = Callable[[Source], Iterator[Violation]]


def functions_are_short(source: Source) -> Iterator[Violation]:
    for node in _functions(source.tree):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield (
                node.lineno,
                (
                    f"{node.name} has {lines} lines, {FUNCTION_LINES_MAX} are allowed: keep the "
                    "branches in one parent, and move straight-line parts into leaves"
                ),
            )


def files_are_short(source: Source) -> Iterator[Violation]:
    lines = source.text.count("\n")
    allowed = TEST_FILE_LINES_MAX if source.is_test else FILE_LINES_MAX
    if lines > allowed:
        yield 1, f"{lines} lines, {allowed} are allowed: split it by a noun"


def only_the_cli_prints(source: Source) -> Iterator[Violation]:
    if source.path.parts[0] != "services" or source.in_package == "cli":
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _name_of(node.func) == "print":
            yield node.lineno, "do not print: log with structlog, or return it to the cli"


def names_say_something(source: Source) -> Iterator[Violation]:
    named = [(1, source.path.stem)]
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            named.append((node.lineno, node.name))
    for line, name in named:
        for word in sorted(BANNED_WORDS.intersection(_words(name))):
            yield line, f"{name}: name it by what it does, not {word!r}"


def ports_list_what_they_raise(source: Source) -> Iterator[Violation]:
    """An error of ours that a port method's docstring names belongs under `Raises:`."""
    if source.in_package != "ports":
        return
    for protocol in ast.walk(source.tree):
        if not isinstance(protocol, ast.ClassDef) or not _is_protocol(protocol):
            continue
        for method in _functions(protocol):
            text = ast.get_docstring(method) or ""
            before = text.partition("Raises:")[0]
            if _errors_in(before):
                yield (
                    method.lineno,
                    f"{protocol.name}.{method.name}: list errors under `Raises:`, one a line",
                )


def core_has_no_powers(source: Source) -> Iterator[Violation]:
    if source.in_package != "core":
        return
    for node in ast.walk(source.tree):
        if not isinstance(node, (ast.BinOp, ast.AugAssign)) or not isinstance(node.op, ast.Pow):
            continue
        if isinstance(node, ast.BinOp) and _is_int(node.left) and _is_int(node.right):
            continue
        yield node.lineno, "no ** here: on an array it is numpy's power; multiply, or use sqrt"


def core_is_repeatable(source: Source) -> Iterator[Violation]:
    if source.in_package != "core":
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _name_of(node.func) in BANNED_IN_CORE:
            yield node.lineno, BANNED_IN_CORE[_name_of(node.func)]
        if (
            isinstance(node, ast.keyword)
            and node.arg == "dtype"
            and _name_of(node.value)
            in {
                "object",
                "object_",
            }
        ):
            yield node.lineno, "no arrays of objects: intern them to ids"


def packages_are_described(source: Source) -> Iterator[Violation]:
    if source.path.name != "__init__.py":
        return
    if ast.get_docstring(source.tree) is None:
        yield 1, "say what lives here, what must not, and which neighbours call it"
    if len(source.tree.body) > 1:
        yield source.tree.body[1].lineno, "no code in a package's __init__: move it to a module"


def exceptions_are_named(source: Source) -> Iterator[Violation]:
    if not source.in_package or source.in_package in {"bootstrap", "cli"}:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and (
            node.type is None or _name_of(node.type) == "Exception"
        ):
            yield node.lineno, "catch what you can treat; bootstrap and cli see the rest"


def ports_have_fakes_not_mocks(source: Source) -> Iterator[Violation]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or "", *(f"{node.module}.{name.name}" for name in node.names)]
        elif isinstance(node, ast.Import):
            modules = [name.name for name in node.names]
        else:
            continue
        if "unittest.mock" in modules:
            yield node.lineno, "no mocks: use the embedded or simulated adapter"


def todos_have_an_issue(source: Source) -> Iterator[Violation]:
    for number, line in enumerate(source.text.splitlines(), start=1):
        if re.search(r"#\s*(TODO|FIXME|XXX)\b(?!.*#\d+)", line):
            yield number, "name the issue (#12), or do it now"


EXAMPLES: Final[list[tuple[Rule, str, str]]] = [
    # rule, path of a file that breaks it, its text
    (functions_are_short, "services/decklog/a.py", "def f():\n" + "    x = 1\n" * 60),
    (files_are_short, "services/decklog/a.py", "x = 1\n" * 501),
    (only_the_cli_prints, "services/decklog/core/a.py", "print(1)\n"),
    (names_say_something, "services/decklog/core/queue_utils.py", "x = 1\n"),
    (names_say_something, "services/decklog/core/a.py", "class QueueManager: ...\n"),
    (
        ports_list_what_they_raise,
        "services/decklog/ports/a.py",
        'class A(Protocol):\n  def f(self) -> None:\n    """Do it, or LogUnavailable."""\n',
    ),
    (core_has_no_powers, "services/decklog/core/a.py", "x = y**2\n"),
    (core_is_repeatable, "services/decklog/core/a.py", "x = hash(y)\n"),
    (core_is_repeatable, "services/decklog/core/a.py", "x = np.zeros(3, dtype=object)\n"),
    (packages_are_described, "services/decklog/core/__init__.py", ""),
    (packages_are_described, "services/decklog/core/__init__.py", '"""A."""\nx = 1\n'),
    (
        exceptions_are_named,
        "services/decklog/core/a.py",
        "try:\n  f()\nexcept Exception:\n  pass\n",
    ),
    (ports_have_fakes_not_mocks, "tests/unit/test_a.py", "from unittest.mock import Mock\n"),
    (todos_have_an_issue, "services/decklog/core/a.py", "x = 1  # {}: later\n".format("TODO")),
]
RULES: Final = list(dict.fromkeys(rule for rule, _, _ in EXAMPLES))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_code_is_tidy(rule: Rule) -> None:
    found = [
        f"{source.path}:{line}: {message}" for source in sources() for line, message in rule(source)
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(("rule", "path", "text"), EXAMPLES)
def test_the_rule_can_fail(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(PurePosixPath(path), text)))


def test_literal_powers_are_only_numbers() -> None:
    source = Source(PurePosixPath("services/decklog/core/a.py"), "LIMIT = 2**63 - 1\n")
    assert not list(core_has_no_powers(source))


def test_every_package_is_one() -> None:
    """Without an __init__ the import contracts would not see the folder, and say nothing."""
    folders = {source.path.parent for source in sources() if source.path.parts[0] == "services"}
    assert not [str(each) for each in sorted(folders) if not (ROOT / each / "__init__.py").exists()]


def _functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _name_of(node: ast.expr) -> str:
    """Return the last part of a dotted name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _is_int(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(_name_of(base) == "Protocol" for base in node.bases)


def _errors_in(text: str) -> set[str]:
    errors = ROOT / "services" / "decklog" / "core" / "errors.py"
    ours = {
        node.name for node in ast.parse(errors.read_text()).body if isinstance(node, ast.ClassDef)
    }
    return ours.intersection(re.findall(r"\w+", text))
