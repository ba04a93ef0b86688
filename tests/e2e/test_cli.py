#!/usr/bin/env -S python3 -B
"""The program as a user and a script meet it."""

import json
import os
import resource
import signal
import subprocess

import tap
from tap import answer, belay, case, same


@case("version answers, in every format")
def _():
    version = json.loads(answer("version", "--json"))
    same(sorted(version), ["drivers", "store_format", "version"])
    assert "memory" in version["drivers"]
    same(answer("version", "-q").strip(), version["version"])
    same(answer("--version", "-q").strip(), version["version"])
    same(answer("version", "--output", "jsonl"), answer("--json", "version"))
    assert answer("version").startswith(f"version       {version['version']}\n")


@case("errors lists every code, and -q only the codes")
def _():
    rows = json.loads(answer("errors", "--json"))["items"]
    lines = [json.loads(line) for line in answer("errors", "--output=jsonl").splitlines()]
    same(lines, rows)
    same(answer("errors", "-q").split(), [row["code"] for row in rows])
    same([row["number"] for row in rows], list(range(len(rows))))
    by_code = {row["code"]: row["exit_code"] for row in rows}
    same(by_code["ok"], 0)
    same(by_code["invalid"], 2)
    same(by_code["not_found"], 3)
    same(by_code["lease_lost"], 4)
    same(by_code["timeout"], 5)
    same(by_code["unavailable"], 69)
    same(by_code["throttled"], 75)
    same(by_code["denied"], 77)
    same(by_code["unsupported_format"], 78)


@case("a table has aligned columns and no line ends in a space")
def _():
    lines = answer("errors").splitlines()
    starts = [lines[0].index(name) for name in
              ("number", "code", "http_status", "exit_code", "retryable", "text")]
    for line in lines:
        same(line, line.rstrip())
        for start in starts[1:]:
            same(line[start - 2:start], "  ")


@case("every command has help, by --help, -h and help")
def _():
    listed = tap.operations()
    for words in ("version", "errors", "help", "completion", "man"):
        assert words in listed, words
    for words in listed:
        text = answer("help", *words.split())
        assert text.startswith(f"usage: belay {words}"), text
        same(answer(*words.split(), "--help"), text)
        same(answer("-h", *words.split()), text)
    same(answer("--help"), answer("help"))


MISTAKES = [
    ((), "usage: belay ["),
    (("versoin",), "belay: versoin: unknown command; did you mean version?\n"),
    (("",), "belay: : unknown command\n"),
    (("--",), "usage: belay ["),
    (("--bogus",), "belay: --bogus: unknown option\n"),
    (("version", "--outptu", "json"),
     "belay: version: --outptu: unknown option; did you mean --output?\n"),
    (("version", "--output"), "belay: version: --output: has no value\n"),
    (("version", "--output", "yaml"),
     "belay: version: --output: must be one of table, json, jsonl\n"),
    (("version", "--output=table", "--output=table"),
     "belay: version: --output: is given twice\n"),
    (("version", "--json=1"), "belay: version: --json: takes no value\n"),
    (("version", "now"), "belay: version: now: is one argument too many\n"),
    (("version", "--", "--json"), "belay: version: --json: is one argument too many\n"),
    (("completion",), "belay: completion: SHELL: is missing\n"),
    (("completion", "tcsh"), "belay: completion: SHELL: must be one of bash, zsh, fish\n"),
    (("help", "me"), "belay: help: no such command; belay help lists them all\n"),
    (("version", "--store="), "belay: version: --store: is empty\n"),
    (("\x1b[2J\n",), "belay: \\x1b[2J\\n: unknown command\n"),
]


@case("a mistake is exit status 2, one line on standard error, nothing on standard output")
def _():
    for words, message in MISTAKES:
        ran = belay(*words)
        same((words, ran.returncode, ran.stdout), (words, 2, b""))
        text = ran.stderr.decode()
        assert text.startswith(message), text
        if not message.startswith("usage"):
            same(text.count("\n"), 1)


@case("with --json a mistake is one JSON object on standard error")
def _():
    for words, message in MISTAKES:
        if "--" in words or any(w.startswith("--output") for w in words):
            continue
        for asked in (("--json",), ("--output=jsonl",), ("--output", "json")):
            ran = belay(*asked, *words)
            same((words, ran.returncode, ran.stdout), (words, 2, b""))
            error = json.loads(ran.stderr)["error"]
            same(sorted(error), ["code", "detail", "message"])
            same(error["code"], "invalid")
            assert error["detail"]["reason"], error
            same(ran.stderr.count(b"\n"), 1)


@case("words that are not UTF-8 are refused")
def _():
    ran = belay(b"version", b"\xff\xfe")
    same((ran.returncode, ran.stdout), (2, b""))
    same(ran.stderr, b"belay: argument 2: is not UTF-8 text\n")


@case("a very long word is told in one short line")
def _():
    ran = belay("x" * 100000)
    same((ran.returncode, ran.stdout), (2, b""))
    assert len(ran.stderr) < 300 and b"unknown command" in ran.stderr, ran.stderr


@case("very many words are no problem")
def _():
    ran = belay("help", *["x"] * 5000)
    same((ran.returncode, ran.stdout), (2, b""))


@case("a full disk is exit status 1, with a message")
def _():
    with open("/dev/full", "wb") as full:
        ran = belay("errors", stdout=full)
    same(ran.returncode, 1)
    same(ran.stderr, b"belay: standard output: cannot be written: "
                     b"No space left on device\n")


@case("a reader that went away is exit status 1, with a message")
def _():
    for asked in ((), ("--json",)):
        read_end, write_end = os.pipe()
        os.close(read_end)
        ran = belay("errors", *asked, stdout=write_end)
        os.close(write_end)
        same(ran.returncode, 1)
        assert b"Broken pipe" in ran.stderr, ran.stderr
        if asked:
            same(json.loads(ran.stderr)["error"]["detail"]["reason"], "output")


@case("a closed standard output is exit status 1, and no file gets the answer")
def _():
    ran = belay("version", stdout=None, preexec_fn=lambda: os.close(1))
    same(ran.returncode, 1)
    assert b"cannot be written" in ran.stderr, ran.stderr


@case("closed standard error and input do not matter")
def _():
    ran = belay("version", "-q", stderr=None, preexec_fn=lambda: os.close(2))
    same(ran.returncode, 0)
    ran = belay("versoin", stderr=None, preexec_fn=lambda: os.close(2))
    same((ran.returncode, ran.stdout), (2, b""))
    ran = belay("version", "-q", stdin=None, preexec_fn=lambda: os.close(0))
    same((ran.returncode, ran.stderr), (0, b""))

    def close_all():
        os.closerange(0, 3)
    ran = subprocess.run([tap.BELAY, "version"], check=False, preexec_fn=close_all)
    same(ran.returncode, 1)


@case("an answer cut off by a limit of the file size is exit status 1")
def _():
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open("limited", "wb") as out:
        ran = belay("errors", stdout=out, preexec_fn=small_files)
    same(ran.returncode, 1)
    assert b"File too large" in ran.stderr, ran.stderr


@case("commands that need no store look at none")
def _():
    hostile = {"BELAY_STORE": "nonsense\n", "BELAY_NAMESPACE": "\udcff"}
    env = {os.fsencode(k): os.fsencode(v) for k, v in (os.environ | hostile).items()}
    for words in ("version", "errors", "help", "man"):
        ran = subprocess.run([tap.BELAY, words], check=False, env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        same((words, ran.returncode, ran.stderr), (words, 0, b""))
    same([name for name in os.listdir(".") if name != "limited"], [])


@case("a locale does not change an answer")
def _():
    for name in ("C", "C.UTF-8", "tr_TR.UTF-8", "nonsense"):
        same(answer("errors", "--json", env={"LC_ALL": name}), answer("errors", "--json"))


@case("an empty argument list is a mistake, not a crash")
def _():
    ran = subprocess.run(["placeholder"], executable=tap.BELAY, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    same((ran.returncode, ran.stdout), (2, b""))


tap.main()
