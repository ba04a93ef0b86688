#!/usr/bin/env -S python3 -B
"""Completion scripts: what the shells make of them."""

import shutil
import subprocess

import tap
from tap import answer, case, same

OPTIONS = ["--store", "--namespace", "--output", "--json", "--quiet", "--help", "--version"]

FIRST_WORDS = list(dict.fromkeys(words.split()[0] for words in tap.operations()))

# The words before the cursor, the last being the one to complete; what is offered.
LINES = [
    ([""], FIRST_WORDS),
    (["ver"], ["version"]),
    (["--json", "err"], ["errors"]),
    (["--output", ""], ["table", "json", "jsonl"]),
    (["--output", "js"], ["json", "jsonl"]),
    (["--store", "x", "ver"], ["version"]),
    (["version", "--out"], ["--output"]),
    (["version", "--"], OPTIONS),
    (["completion", ""], ["bash", "zsh", "fish"]),
    (["--output", "json", "completion", "z"], ["zsh"]),
    (["version", ""], []),
    (["epoch", ""], ["show", "raise"]),
    (["namespace", "delete", "--con"], ["--confirm"]),
    (["nonsense", ""], FIRST_WORDS),
]

BASH = """
eval "$1"
shift
COMP_WORDS=(belay "$@")
COMP_CWORD=$#
_belay
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""


def run(*command, **options):
    ran = subprocess.run(command, check=False, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=60, **options)
    same((ran.returncode, ran.stderr), (0, ""))
    return ran.stdout


@case("bash takes the script without complaint")
def _():
    run("bash", "-n", input=answer("completion", "bash"))
    run("bash", "-euc", 'eval "$1"; complete -p belay', "bash", answer("completion", "bash"))


@case("shellcheck finds nothing in the script for bash")
def _():
    run("shellcheck", "-s", "bash", "-", input=answer("completion", "bash"))


@case("bash completes commands, options and values")
def _():
    script = answer("completion", "bash")
    for words, offered in LINES:
        got = run("bash", "-uc", BASH, "bash", script, *words).split()
        same((words, got), (words, offered))


@case("bash completes behind an equals sign, which it takes for a word")
def _():
    script = answer("completion", "bash")
    for words in (["--output", "=", "js"], ["version", "--output", "=", "js"]):
        same(run("bash", "-uc", BASH, "bash", script, *words).split(), ["json", "jsonl"])
    same(run("bash", "-uc", BASH, "bash", script, "--output", "=").split(),
         ["table", "json", "jsonl"])
    same(run("bash", "-uc", BASH, "bash", script, "--output", "=", "json", "ver").split(),
         ["version"])


@case("bash completes the commands that help is asked for")
def _():
    script = answer("completion", "bash")
    for words, offered in ((["help", "wo"], ["work"]), (["help", ""], FIRST_WORDS),
                           (["help", "epoch", "ra"], ["raise"]), (["help", "--"], OPTIONS),
                           (["--json", "help", "epo"], ["epoch"])):
        same((words, run("bash", "-uc", BASH, "bash", script, *words).split()),
             (words, offered))


@case("a double dash ends completion")
def _():
    script = answer("completion", "bash")
    same(run("bash", "-uc", BASH, "bash", script, "--", "ver").split(), [])


if shutil.which("zsh"):
    ZSH = """
compdef() { : }
words=(belay "${@:2}")
CURRENT=$#words
compadd() { shift; print -l -- ${(M)@:#$words[CURRENT]*} }
_describe() {
    local -a list; list=(${(P)@[-1]%%:*}); print -l -- ${(M)list:#$words[CURRENT]*}
}
_files() { }
eval "$1"
_belay
"""

    @case("zsh takes the script and completes")
    def _():
        script = answer("completion", "zsh")
        run("zsh", "-n", input=script)
        for words, offered in LINES:
            got = run("zsh", "-fuc", ZSH, "zsh", script, *words).split()
            same((words, got), (words, offered))

if shutil.which("fish"):
    @case("fish takes the script and completes")
    def _():
        script = answer("completion", "fish")
        run("fish", "--no-config", "-n", "/dev/stdin", input=script)
        for words, offered in LINES:
            line = " ".join(["belay", *words])
            got = run("fish", "--no-config", "-c", f"{script}\ncomplete -C '{line}'")
            got = [entry.split("\t")[0] for entry in got.splitlines()]
            same((words, sorted(got)), (words, sorted(offered)))

tap.main()
