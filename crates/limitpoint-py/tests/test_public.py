"""Everything that people can call is called by some test."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import limitpoint as lp


def used():
    """Attributes and keywords that the other tests use, and what they call by the module's short name."""
    attributes, called = set(), set()
    for path in Path(__file__).parent.glob("test_*.py"):
        if path.name == Path(__file__).name:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                attributes.add(node.attr)
                if isinstance(node.value, ast.Name):
                    called.add((node.value.id, node.attr))
                elif isinstance(node.value, ast.Attribute):
                    called.add((node.value.attr, node.attr))
            elif isinstance(node, ast.ImportFrom) and node.module:
                called |= {(node.module.split(".")[-1], name.name) for name in node.names}
    return attributes, called


def public(module):
    """Names of a module, and the methods and properties of its classes."""
    for name in module.__all__:
        value = getattr(module, name)
        yield name, None
        if not inspect.isclass(value) or issubclass(value, BaseException):
            continue
        own = [base for base in value.__mro__ if base.__module__.startswith("limitpoint")]
        for member in sorted({m for base in own for m in vars(base) if not m.startswith("_")}):
            kind = inspect.getattr_static(value, member)
            if inspect.isfunction(kind) or isinstance(kind, (property, classmethod, staticmethod)):
                yield name, member


@pytest.mark.parametrize("place", ["limitpoint", "limitpoint.sklearn", "limitpoint.torch", "limitpoint.jax"])
def test_every_public_function_is_used_by_a_test(place):
    if "." in place:
        pytest.importorskip({"limitpoint.sklearn": "sklearn"}.get(place, place.split(".")[1]))
    module = importlib.import_module(place)
    attributes, called = used()
    homes = {"lp", "limitpoint"} if place == "limitpoint" else {place.split(".")[1]} | {"lp"}
    unused = []
    for name, member in public(module):
        if member is None:
            # classes of answers are met through their methods
            met = any((home, name) in called for home in homes) or inspect.isclass(getattr(module, name))
        else:
            met = member in attributes
        if not met:
            unused.append(name if member is None else f"{name}.{member}")
    assert not unused, f"no test uses {', '.join(unused)}"


def test_names_are_there_and_documented():
    for name in lp.__all__:
        if name in ("ImplicitBiasClassifier", "MaxMarginClassifier", "MinimumNormRegressor"):
            pytest.importorskip("sklearn")
        assert inspect.getdoc(getattr(lp, name)), f"{name} is not documented"
    assert set(lp.__all__) <= set(dir(lp))
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        lp.colour  # noqa: B018


def test_an_import_brings_nothing_else_along():
    """`import limitpoint` takes milliseconds because NumPy and the core come when they are asked for."""
    code = """
import sys, limitpoint as lp
heavy = {"numpy", "sklearn", "torch", "jax", "pandas", "polars", "limitpoint._core", "importlib.metadata"} & set(sys.modules)
assert not heavy, heavy
assert lp.solve_margin([[1.0], [-1.0]], [1, -1]).separable and "numpy" in sys.modules and "sklearn" not in sys.modules
assert lp.__version__ and all(getattr(lp, name) is not None for name in ("run", "Error", "Run"))
try:
    lp.nothing
except AttributeError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "has no attribute 'nothing'" in found.stdout
