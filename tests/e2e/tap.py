"""TAP for tests in Python, and the program under test.

Decorate functions with @case(name), end with tap.main().  A case fails by raising;
what it raised is shown.
"""

import os
import pathlib
import subprocess
import sys
import traceback

SOURCE = pathlib.Path(os.environ["BELAY_SOURCE_ROOT"])
BUILD = pathlib.Path(os.environ["BELAY_BUILD_ROOT"])
BELAY = BUILD / "belay"

_cases = []


def case(name):
    def add(function):
        _cases.append((name, function))
        return function
    return add


def main():
    failed = 0
    for number, (name, function) in enumerate(_cases, 1):
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Exception:  # whatever it is, the next case shall run
            failed += 1
            for line in traceback.format_exc().splitlines():
                print("#", line)
            print(f"not ok {number} - {name}", flush=True)
    print(f"1..{len(_cases)}")
    sys.exit(1 if failed else 0)


def same(got, want):
    assert got == want, f"got {got!r}, not {want!r}"


def belay(*words, env=None, **options):
    """Run the program; the result has bytes in stdout and stderr."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([BELAY, *words], check=False, timeout=60,
                          env=os.environ | (env or {}), **options)


def answer(*words, **options):
    """What the program prints when all goes well."""
    ran = belay(*words, **options)
    same((ran.returncode, ran.stderr), (0, b""))
    return ran.stdout.decode()


def operations():
    """The words of every command, as the help lists them."""
    listed, inside = [], False
    for line in answer("help").splitlines():
        if line and not line.startswith(" "):
            inside = line.endswith(":") and not line.startswith("Options")
        elif inside and line.startswith("  ") and not line.startswith("   "):
            listed.append(line[2:].split("  ")[0].strip())
    return listed
