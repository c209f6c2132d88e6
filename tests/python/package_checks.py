# SPDX-License-Identifier: Apache-2.0
"""Checks of the package as a whole: its public names have docstrings and complete annotations, and
it works from a folder on PYTHONPATH without numpy and torch. It needs neither itself."""

import inspect
import os
import subprocess
import sys
import typing

FOLDER = os.path.normpath(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../native/python"))

WITHOUT_OTHERS = """
import ctypes, sys
sys.modules.update(numpy=None, torch=None)  # an import of either fails
import windlass
variables = {"WINDLASS_RANK": "0", "WINDLASS_WORLD_SIZE": "1", "WINDLASS_JOB": "package"}
memory = (ctypes.c_float * 3)(1, 2, 3)
array = windlass.Tensor(ctypes.addressof(memory), "f32", [3], owner=memory)
with windlass.Communicator.from_environment(variables, 40) as comm:
    comm.all_reduce(array, deadline=40)
    comm.broadcast(array, 0, deadline=40)
    try:
        comm.all_reduce([1.0])
    except windlass.InvalidArgumentException as e:
        assert "a list is no tensor" in str(e), e
    else:
        raise SystemExit("a list was taken")
assert list(memory) == [1, 2, 3], list(memory)
print(windlass.__file__)
"""


def lacking(name, function):
    """Yields what the annotations or the docstring of a function lack."""
    signature = inspect.signature(function)
    for parameter in list(signature.parameters.values()):
        if parameter.name != "self" and parameter.annotation is parameter.empty:
            yield f"{name}: parameter {parameter.name} has no annotation"
    if signature.return_annotation is signature.empty:
        yield f"{name}: the result has no annotation"
    if not name.endswith("__") and not inspect.getdoc(function):
        yield f"{name}: no docstring"
    typing.get_type_hints(function)  # raises where a name in an annotation is not defined


def lacking_in_class(name, kind):
    if not kind.__doc__:
        yield f"{name}: no docstring"
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "windlass"]
    for base in bases:
        for member, value in vars(base).items():
            if isinstance(value, property):
                value = value.fget
            value = getattr(value, "__func__", value)
            if inspect.isfunction(value) and (not member.startswith("_") or member == "__init__"):
                yield from lacking(f"{name}.{member}", value)


def run():
    sys.path.insert(0, FOLDER)
    import windlass

    faults = [] if windlass.__doc__ else ["windlass: no docstring"]
    for name in windlass.__all__:
        value = getattr(windlass, name)
        if inspect.isclass(value):
            faults += lacking_in_class(name, value)
        elif inspect.isfunction(value):
            faults += lacking(name, value)
    if faults:
        raise SystemExit("\n".join(faults))
    assert os.path.isfile(os.path.join(FOLDER, "windlass", "py.typed"))
    found = subprocess.run(
        [sys.executable, "-W", "error", "-B", "-c", WITHOUT_OTHERS], cwd="/", check=True,
        env={**os.environ, "PYTHONPATH": FOLDER}, stdout=subprocess.PIPE, timeout=120)
    assert found.stdout.decode().strip() == os.path.join(FOLDER, "windlass", "__init__.py"), found


if __name__ == "__main__":
    run()
    print("done")
