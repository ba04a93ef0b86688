#!/usr/bin/env -S python3 -B
"""The manual pages: complete, and rendered without a complaint."""

import subprocess

import tap
from tap import answer, case, same

BELAY_3 = tap.SOURCE / "docs" / "man" / "belay.3"


def rendered(page):
    """A page as plain text; any warning is a failure."""
    ran = subprocess.run(["man", "--warnings=w", "-E", "UTF-8", "-l", str(page)],
                         check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env={"PATH": "/usr/bin:/bin", "MANWIDTH": "100",
                              "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""})
    same((ran.returncode, ran.stderr), (0, b""))
    return ran.stdout.decode()


@case("belay(1) is what the program prints")
def _():
    same((tap.BUILD / "docs" / "belay.1").read_text(encoding="utf-8"), answer("man"))


@case("belay(1) renders without a warning and has every command")
def _():
    text = rendered(tap.BUILD / "docs" / "belay.1")
    for words in tap.operations():
        assert f"belay {words}" in text, words
    for name in ("BELAY_STORE", "BELAY_NAMESPACE", "EXIT STATUS", "--output"):
        assert name in text, name


@case("belay(3) renders without a warning and has every exported function")
def _():
    text = rendered(BELAY_3)
    listing = subprocess.run(["nm", "-D", "--defined-only", "--format=posix",
                              tap.BUILD / "libbelay.so"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    exported = [line.split("@")[0] for line in listing.splitlines() if " T " in line]
    assert len(exported) > 5, exported
    for name in exported:
        assert f"{name}(" in text, name


tap.main()
